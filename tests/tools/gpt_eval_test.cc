// gpt-eval's contract, on the real binary.
#include <gtest/gtest.h>

#include "support/golden.h"
#include "tools/gpt_generate.h"

using namespace hark::test;

namespace {

ProcessResult evaluate(std::vector<std::string> arguments, const std::string& input) {
    arguments.insert(arguments.begin(), {"--model", kGptDemo, "--threads", "1"});
    return run_tool("gpt-eval", arguments, input);
}

const json& gpt_eval_golden() {
    static const json read = golden("evaluation.json");
    return read;
}

std::string lines(const char* task) {
    std::string text;
    for (const json& line : gpt_eval_golden()["lines"][task]) text += line.dump() + "\n";
    return text;
}

}  // namespace

TEST(GptEval, MeasuresAsJson) {
    const ProcessResult run =
        evaluate({"--context", "64", "--format", "json"}, "\n" + lines("perplexity"));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    const json found = json::parse(run.out), &expected = gpt_eval_golden()["results"]["perplexity"];
    EXPECT_EQ(found["task"], "perplexity");
    EXPECT_EQ(found["texts"], 6);
    EXPECT_EQ(found["tokens"], expected["tokens"]);
    EXPECT_NEAR(found["bits_per_byte"].get<double>(), expected["bits_per_byte"], 1e-4);
    EXPECT_NEAR(found["loss"].get<double>(), expected["loss"], 1e-4);
    EXPECT_NEAR(found["loss_stderr"].get<double>(), expected["loss_stderr"], 1e-4);
    EXPECT_NEAR(found["perplexity"].get<double>(), std::exp(found["loss"].get<double>()), 1e-6);
}

TEST(GptEval, MeasuresAsText) {
    const ProcessResult run =
        evaluate({"--task", "hellaswag", "--context", "64"}, lines("hellaswag"));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.out,
              "questions    5\n"
              "acc        0.2 +/- 0.2\n"
              "acc_norm   0.4 +/- 0.244949\n");
}

TEST(GptEval, AWholeText) {
    const std::string text = "The old captain walked home.\n\nHe slept.";
    const ProcessResult whole =
        evaluate({"--input-format", "text", "--format", "json"}, text + "\n");
    const ProcessResult line = evaluate({"--format", "json"}, json{{"text", text}}.dump());
    EXPECT_EQ(whole.exit_code, 0) << whole.err;
    EXPECT_EQ(whole.out, line.out);
    EXPECT_EQ(json::parse(whole.out)["texts"], 1);
}

// As by the other tools of texts.
TEST(GptEval, BytesThatAreNotUtf8AreReplaced) {
    const ProcessResult run = evaluate({"--input-format", "text"}, "na\xefve");
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.out, evaluate({"--input-format", "text"}, "na\uFFFDve").out);
}

// By its first line that is not blank, as JSON.
TEST(GptEval, LinesOfJsonAreKnown) {
    const std::string mark = "\xEF\xBB\xBF", line = R"({"text": "He walked home."})",
                      no_json = "expected a JSON object, found text that is not JSON";
    const ProcessResult plain = evaluate({}, line + "\n");
    EXPECT_EQ(plain.exit_code, 0) << plain.err;
    const ProcessResult marked = evaluate({}, mark + line + "\n");
    EXPECT_EQ(marked.exit_code, 0) << marked.err;
    EXPECT_EQ(marked.out, plain.out);
    for (const std::string& blank : {std::string(" "), mark}) {
        const ProcessResult run = evaluate({}, blank + "\n" + line + "\n");
        EXPECT_EQ(run.err, "gpt-eval: stdin: line 1: " + no_json + "\n");
        EXPECT_EQ(run.out, plain.out);
    }
    EXPECT_EQ(evaluate({}, mark + "\nA book.\n").err,
              "gpt-eval: stdin: line 1: " + no_json + "\ngpt-eval: stdin: line 2: " + no_json +
                  "; --input-format text scores all of stdin as one text\n");
    for (const auto& [value, kind] : {std::pair{"\"text\"", "string"}, {"3", "number"}}) {
        const ProcessResult run = evaluate({}, value + ("\n" + line + "\n"));
        EXPECT_EQ(run.err,
                  concat("gpt-eval: stdin: line 1: expected a JSON object, found ", kind, "\n"));
        EXPECT_EQ(run.out, plain.out);
    }
}

TEST(GptEval, ComparesWithTheOriginal) {
    const auto compare = [](std::vector<std::string> arguments) {
        arguments.insert(arguments.end(), {"--against", kGptDemo, "--format", "json"});
        const ProcessResult run = evaluate(arguments, lines("perplexity"));
        EXPECT_EQ(run.exit_code, 0) << run.err;
        return json::parse(run.out);
    };
    const json same = compare({}), quantized = compare({"--dtype", "int8"});
    EXPECT_NEAR(same["kl_divergence"].get<double>(), 0, 1e-9);
    EXPECT_EQ(same["changed_top_1"], 0.0);
    EXPECT_GT(quantized["kl_divergence"].get<double>(), 1e-6);
    EXPECT_LT(quantized["kl_divergence"].get<double>(), 0.05);
    EXPECT_GE(quantized["kl_divergence_max"].get<double>(),
              quantized["kl_divergence"].get<double>());
    EXPECT_LT(quantized["changed_top_1"].get<double>(), 0.2);
    EXPECT_EQ(quantized["reference_perplexity"], same["perplexity"]);
}

TEST(GptEval, WrongLinesAreLeftOut) {
    const std::string good = R"({"context": "a", "choices": ["b", "c"], "answer": 0})";
    const ProcessResult run = evaluate({"--task", "choice", "--format", "json"},
                                       "[1]\n" + good + "\nno\n" + R"({"context": "a"})" + "\n");
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(run.err,
              "gpt-eval: stdin: line 1: expected a JSON object, found array\n"
              "gpt-eval: stdin: line 3: expected a JSON object, found text that is not JSON\n"
              "gpt-eval: stdin: line 4: expected a field choices, found none\n");
    EXPECT_EQ(json::parse(run.out)["questions"], 1);
    // A file that is no JSON at all would be an error per line.
    for (const char* task : {"perplexity", "choice"}) {
        const ProcessResult text = evaluate({"--task", task}, "\nA book.\nIts end.\n");
        EXPECT_EQ(text.exit_code, 1);
        EXPECT_EQ(text.out, "");
        EXPECT_EQ(text.err,
                  "gpt-eval: stdin: line 2: expected a JSON object, found text that is not JSON" +
                      std::string(*task == 'c'
                                      ? "\n"
                                      : "; --input-format text scores all of stdin as one text\n"));
    }
    const std::string empty = R"({"context": "a", "choices": ["b", ""], "answer": 0})";
    expect_contains(evaluate({"--task", "choice"}, empty).err, "choice 1: expected a text");
}

TEST(GptEval, RefusesWhatItCannotDo) {
    const ProcessResult none = evaluate({}, "\n");
    EXPECT_EQ(none.exit_code, 1);
    EXPECT_EQ(none.out, "");
    EXPECT_EQ(none.err, "gpt-eval: stdin: expected 1 text or question or more, found none\n");
    const ProcessResult context = evaluate({"--context", "513"}, "{}");
    EXPECT_EQ(context.exit_code, 1);
    EXPECT_EQ(context.err,
              "gpt-eval: --context: expected at most the model's 512 positions, got 513\n");
    const ProcessResult usage = evaluate({"--task", "arc", "--against", kGptDemo}, "{}");
    EXPECT_EQ(usage.exit_code, 2);
    expect_contains(usage.err, "--against needs --task perplexity (got arc)");
    EXPECT_EQ(evaluate({"--task", "arc", "--input-format", "text"}, "x").exit_code, 2);
    EXPECT_EQ(evaluate({"--task", "piqa"}, "x").exit_code, 2);
    EXPECT_EQ(evaluate({"--against", ""}, "x").exit_code, 2);
}
