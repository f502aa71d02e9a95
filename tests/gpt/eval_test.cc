// gpt-eval's measures against lm-eval's (tests/golden/evaluation.py), and wrong lines.
#include "gpt/eval/eval_task.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/json/json.h"
#include "gpt/decoder/model.h"
#include "gpt/eval/mean.h"
#include "gpt/eval/questions.h"
#include "gpt/eval/windows.h"
#include "gpt/families/model_file.h"
#include "support/error_of.h"
#include "support/golden.h"
#include "support/process.h"

namespace hark::gpt {
namespace {

using nlohmann::json;

const json& golden() {
    static const json read = test::golden("evaluation.json");
    return read;
}

struct Demo {
    explicit Demo(double epsilon = 1e-5) {
        file = open_model(test::source_dir() / "models/gpt-demo");
        DecoderConfig config = file->config();
        config.norm_eps = static_cast<float>(epsilon);
        model = read_model(file->tensors(), config, precision_of("f32"));
        tokenizer = file->tokenizer();
    }
    std::unique_ptr<ModelFile> file;
    Model model;
    std::shared_ptr<const Tokenizer> tokenizer;
};

// The measures of the golden file's lines, passes of `most_rows` rows.
std::map<std::string, Measure> measured(const std::string& name, int64_t most_rows = 0,
                                        double other_epsilon = 0) {
    const double own = other_epsilon > 0 ? other_epsilon : 1e-5;
    const Demo demo(own), original;
    Context ctx(2);
    ModelRows rows(ctx, demo.model, most_rows), reference(ctx, original.model, most_rows);
    const auto task = make_eval_task(
        name, eval_models(ctx, *demo.tokenizer, rows, other_epsilon > 0 ? &reference : nullptr,
                          golden()["context"]));
    for (const json& line : golden()["lines"][name]) {
        task->add(line);
        task->compute_if_full();
    }
    task->finish();
    EXPECT_EQ(task->count(), std::ssize(golden()["lines"][name]));
    std::map<std::string, Measure> all;
    for (const Measure& measure : task->measures()) all[measure.name] = measure;
    return all;
}

void expect_near(const std::map<std::string, Measure>& measures, const json& expected) {
    for (const auto& [name, value] : expected.items()) {
        const bool is_error = name.ends_with("_stderr");
        const Measure& found = measures.at(is_error ? name.substr(0, name.size() - 7) : name);
        const double wanted = value.get<double>();
        EXPECT_NEAR(is_error ? found.standard_error.value() : found.value, wanted,
                    1e-4 * std::max(1.0, wanted))
            << name;
    }
}

std::string error_of(const std::string& task, const std::string& line) {
    try {
        read_question(task, json::parse(line));
    } catch (const Error& error) {
        return error.what();
    }
    return "none";
}

}  // namespace

TEST(Eval, MeasuresAreThoseOfLmEval) {
    for (const auto& [task, expected] : golden()["results"].items()) {
        SCOPED_TRACE(task);
        expect_near(measured(task), expected);
    }
}

TEST(Eval, PassesOfFewRowsAreTheSame) {
    for (const char* task : {"perplexity", "hellaswag"}) {
        SCOPED_TRACE(task);
        expect_near(measured(task, 7), golden()["results"][task]);
    }
}

TEST(Eval, ChoicesHaveTheLikelihoodsOfLmEval) {
    const Demo demo;
    Context ctx(2);
    ModelRows rows(ctx, demo.model);
    for (const std::string& task : question_tasks()) {
        const json& lines = golden()["lines"][task];
        std::vector<ChoiceQuestion> questions;
        for (const json& line : lines)
            questions.push_back(
                encode_question(*demo.tokenizer, read_question(task, line), golden()["context"]));
        const auto losses = choice_losses(questions, 512, golden()["context"],
                                          [&](PackedRows& packed) { return rows.losses(packed); });
        for (size_t i = 0; i < lines.size(); ++i)
            for (size_t k = 0; k < losses[i].size(); ++k)
                EXPECT_NEAR(-losses[i][k].sum, golden()["likelihoods"][task][i][k].get<double>(),
                            2e-4)
                    << task << " " << i << " " << k;
    }
}

TEST(Eval, DivergenceFromAnotherModel) {
    expect_near(measured("perplexity", 0, golden()["epsilon"]), golden()["divergence"]);
    const auto same = measured("perplexity", 0, 1e-5);
    EXPECT_NEAR(same.at("kl_divergence").value, 0, 1e-9);
    EXPECT_EQ(same.at("changed_top_1").value, 0);
    EXPECT_DOUBLE_EQ(same.at("perplexity").value, same.at("reference_perplexity").value);
}

// More rows than are compared at once.
TEST(Eval, DivergenceOfALongTextIsOfAllItsWindows) {
    const Demo demo;
    Context ctx(2);
    ModelRows rows(ctx, demo.model);
    const auto task =
        make_eval_task("perplexity", eval_models(ctx, *demo.tokenizer, rows, &rows, 16));
    std::string text;
    while (text.size() < 5600) text += "0 1 2 3 4 5 6 7 8 9\n";
    task->add({{"text", text}});
    task->finish();
    std::map<std::string, double> all;
    for (const Measure& measure : task->measures()) all[measure.name] = measure.value;
    EXPECT_GT(all.at("tokens"), 4096);
    EXPECT_EQ(all.at("tokens"), static_cast<double>(demo.tokenizer->encode(text).size()));
    EXPECT_NEAR(all.at("kl_divergence"), 0, 1e-9);
}

TEST(Eval, AWindowFitsIntoTheOriginal) {
    Demo longer;
    const Demo original;
    longer.model.config.n_positions = 1024;
    Context ctx(2);
    ModelRows rows(ctx, longer.model), reference(ctx, original.model);
    EXPECT_EQ(test::error_of([&] { eval_models(ctx, *original.tokenizer, rows, &reference, 0); }),
              "--against: expected windows of at most the original's 512 positions, got 1024; "
              "give --context 512");
}

TEST(Eval, APartOfRowsHasWholeSequences) {
    std::vector<int32_t> ids(11);
    std::iota(ids.begin(), ids.end(), 0);
    PackedRows rows;
    add_windows(rows, ids, 99, 4);
    const PackedRows part = rows.part(4, 12);
    EXPECT_EQ(part.tokens, (std::vector<int32_t>{3, 4, 5, 6, 6, 7, 8, 9}));
    EXPECT_EQ(part.targets, (std::vector<int32_t>{4, 5, 6, 7, -1, 8, 9, 10}));
    EXPECT_EQ(part.position, (std::vector<int32_t>{0, 1, 2, 3, 0, 1, 2, 3}));
    EXPECT_EQ(part.first, (std::vector<int32_t>{0, 0, 0, 0, 4, 4, 4, 4}));
    EXPECT_EQ(part.end, (std::vector<int32_t>{4, 4, 4, 4, 8, 8, 8, 8}));
}

TEST(Eval, WindowsScoreEachTokenOnce) {
    std::vector<int32_t> ids(11);
    std::iota(ids.begin(), ids.end(), 0);
    PackedRows rows;
    add_windows(rows, ids, 99, 4);
    EXPECT_EQ(rows.tokens, (std::vector<int32_t>{99, 0, 1, 2, 3, 4, 5, 6, 6, 7, 8, 9}));
    EXPECT_EQ(rows.targets, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, -1, 8, 9, 10}));
    EXPECT_EQ(rows.position, (std::vector<int32_t>{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}));
    rows = {};
    add_windows(rows, {}, 99, 4);
    EXPECT_EQ(rows.size(), 0);
}

TEST(Eval, WordsAndMeans) {
    EXPECT_EQ(count_words(""), 1);
    EXPECT_EQ(count_words("one two\n\nthree"), 3);
    EXPECT_EQ(count_words(" x\u00a0 "), 3);
    Mean mean;
    EXPECT_EQ(mean.standard_error(), 0);
    for (const double x : {1.0, 2.0, 4.0, 9.0}) mean.add(x);
    EXPECT_DOUBLE_EQ(mean.value(), 4);
    EXPECT_DOUBLE_EQ(mean.sum(), 16);
    EXPECT_NEAR(mean.standard_error(), std::sqrt(38.0 / 3 / 4), 1e-12);
}

TEST(Eval, QuestionsAsTheyArePublished) {
    const TextQuestion arc = read_question("arc", json::parse(R"({"id": "q", "question": {
        "stem": "Which?", "choices": [{"text": "one", "label": "A"}, {"text": "two", "label": "B"}]},
        "answerKey": "B"})"));
    EXPECT_EQ(arc.context, "Question: Which?\nAnswer:");
    EXPECT_EQ(arc.choices, (std::vector<std::string>{"one", "two"}));
    EXPECT_EQ(arc.label, 1);
    const TextQuestion mmlu = read_question(
        "mmlu", json::parse(R"({"question": " Q ", "choices": ["a", "b"], "answer": 1})"));
    EXPECT_EQ(mmlu.context, "Q\nA. a\nB. b\nAnswer:");
    EXPECT_EQ(mmlu.choices, (std::vector<std::string>{"A", "B"}));
    const TextQuestion marks = read_question("hellaswag", json::parse(R"({"activity_label": "A",
        "ctx_a": "b [header] c [title] d", "ctx_b": "[open", "endings": ["[x] y  z", "[a\nb]"],
        "label": "1"})"));
    EXPECT_EQ(marks.context, "A: b c. d [open");
    EXPECT_EQ(marks.choices, (std::vector<std::string>{" y z", "[a\nb]"}));
}

TEST(Eval, WrongQuestionsAreNamed) {
    EXPECT_EQ(error_of("choice", "{}"), "expected a field context, found none");
    EXPECT_EQ(error_of("choice", R"({"context": 3})"), "context: expected a text, found number");
    EXPECT_EQ(error_of("choice", R"({"context": "", "choices": ["a"]})"),
              "choices: expected 2 texts or more, found 1");
    EXPECT_EQ(error_of("choice", R"({"context": "", "choices": "ab"})"),
              "choices: expected 2 texts or more, found string");
    EXPECT_EQ(error_of("choice", R"({"context": "", "choices": ["a", "b"], "answer": 2})"),
              "answer: expected 0 to 1, found 2");
    EXPECT_EQ(error_of("choice", R"({"context": "", "choices": ["a", "b"], "answer": "B"})"),
              "answer: expected 0 to 1, found \"B\"");
    EXPECT_EQ(error_of("arc", R"({"question": "q", "choices": {"text": ["a", "b"],
              "label": ["A", "B"]}, "answerKey": "C"})"),
              "answerKey: expected one of the labels, found 'C'");
    EXPECT_EQ(error_of("arc", R"({"question": "q", "choices": ["a", "b"]})"),
              "choices: expected an object with text and label, found array");
    EXPECT_EQ(error_of("hellaswag", R"({"ctx_a": "a", "ctx_b": "b"})"),
              "expected a field activity_label, found none");
}

}  // namespace hark::gpt
