#include "gpt/answers/prompts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "core/error.h"
#include "core/json/json.h"
#include "formats/gguf.h"
#include "gpt/answers/answer_line.h"
#include "support/gguf_writer.h"
#include "support/process.h"
#include "text/lines.h"

using namespace hark;
using gpt::PromptFormat;

namespace {

std::vector<gpt::Prompt> read_all(const std::string& input, PromptFormat format,
                                  const std::string& prompt_template = "") {
    std::FILE* file = std::tmpfile();
    std::fwrite(input.data(), 1, input.size(), file);
    std::fflush(file);
    std::rewind(file);
    ByteReader in(fileno(file), "input");
    gpt::PromptReader reader(in, format, prompt_template);
    std::vector<gpt::Prompt> prompts;
    while (auto prompt = reader.next()) prompts.push_back(*prompt);
    std::fclose(file);
    return prompts;
}

std::vector<std::string> texts(const std::string& input, PromptFormat format,
                               const std::string& prompt_template = "") {
    std::vector<std::string> result;
    for (const gpt::Prompt& prompt : read_all(input, format, prompt_template))
        result.push_back(prompt.text);
    return result;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST(PromptReader, WholeStream) {
    EXPECT_EQ(texts("", PromptFormat::whole), Texts{});
    EXPECT_EQ(texts("one\ntwo\n", PromptFormat::whole), Texts{"one\ntwo"});
    EXPECT_EQ(texts("one \r\n\r\n\n", PromptFormat::whole), Texts{"one "});
    EXPECT_EQ(texts("\n", PromptFormat::whole), Texts{""});
    const std::string large(300'000, 'x');
    EXPECT_EQ(texts(large + "\n", PromptFormat::whole), Texts{large});
    EXPECT_EQ(texts("a\xFF"
                    "b",
                    PromptFormat::whole),
              Texts{"a\xEF\xBF\xBD"
                    "b"});
}

TEST(PromptReader, Lines) {
    EXPECT_EQ(texts("one\n\ntwo\r\nthree", PromptFormat::lines),
              (Texts{"one", "", "two", "three"}));
    EXPECT_EQ(texts("", PromptFormat::lines), Texts{});
    const std::string large(200'000, 'x');
    EXPECT_EQ(texts(large + "\n" + large, PromptFormat::lines), (Texts{large, large}));
}

TEST(PromptReader, LinesAcrossThePiecesTheyAreReadIn) {
    Texts lines;
    std::string input;
    for (size_t i = 0; input.size() < 1'000'000; ++i) {
        lines.push_back(std::string(i * i % 997, static_cast<char>('a' + i % 26)));
        input += lines.back() + "\n";
    }
    EXPECT_EQ(texts(input, PromptFormat::lines), lines);
    lines.push_back("no line end after it");
    EXPECT_EQ(texts(input + lines.back(), PromptFormat::lines), lines);
}

TEST(PromptReader, PromptsHaveABound) {
    const std::string most(kMaxLineBytes, 'x');
    EXPECT_EQ(texts("one\n" + most + "\ntwo", PromptFormat::lines), (Texts{"one", most, "two"}));
    const auto refusal = [&](const std::string& input, PromptFormat format) {
        try {
            read_all(input, format);
        } catch (const Error& wrong) {
            return std::string(wrong.what());
        }
        return std::string("accepted");
    };
    EXPECT_EQ(refusal("one\nx" + most + "\ntwo", PromptFormat::lines),
              "input: line 2: the line is longer than 64 MiB");
    EXPECT_EQ(refusal("\n\nx" + most, PromptFormat::jsonl),
              "input: line 3: the line is longer than 64 MiB");
    EXPECT_EQ(refusal("x" + most, PromptFormat::whole), "input: the prompt is longer than 64 MiB");
}

TEST(PromptReader, Templates) {
    EXPECT_EQ(texts("x\n\ny\n", PromptFormat::lines, "a {} b {}"),
              (Texts{"a x b x", "", "a y b y"}));
    EXPECT_EQ(texts("{}", PromptFormat::whole, "<{}>"), Texts{"<{}>"});
    EXPECT_EQ(texts("", PromptFormat::whole, "<{}>"), Texts{});
}

TEST(PromptReader, JsonLines) {
    const auto prompts = read_all(
        "{\"prompt\": \"one\", \"text\": \"no\"}\n\n"
        "{\"text\": \"two\", \"source\": \"a.wav\", \"start\": 1.5, "
        "\"tokens\": [1]}\n"
        "not json\n[1]\n{\"text\": 3}\n"
        "{\"source\": \"b.wav\", \"error\": \"broken\"}\n",
        PromptFormat::jsonl);
    ASSERT_EQ(prompts.size(), 6u);
    EXPECT_EQ(prompts[0].text, "one");
    EXPECT_EQ(prompts[1].text, "two");
    EXPECT_EQ(prompts[0].metadata, R"({"id":0})");
    EXPECT_EQ(prompts[0].where, "input: line 1");
    EXPECT_EQ(prompts[1].metadata, R"({"id":2,"source":"a.wav","start":1.5})");
    const auto expect_error = [&](size_t i, const std::string& code, const std::string& error) {
        EXPECT_EQ(prompts[i].error, error);
        EXPECT_EQ(prompts[i].error_code, code);
    };
    expect_error(2, "invalid_json", "expected a JSON object, found text that is not JSON");
    EXPECT_EQ(prompts[2].where, "input: line 4");
    expect_error(3, "invalid_json", "expected a JSON object, found array");
    expect_error(4, "invalid_value", "text: expected a string, found number");
    expect_error(5, "earlier_stage", "broken");
    EXPECT_EQ(prompts[5].metadata, R"({"id":6,"source":"b.wav"})");
}

namespace {

// The options of a line `{"prompt": "x", FIELDS}`, as the third prompt of a run of seed 100.
gpt::GenerateOptions options_of(const std::string& fields, const char* key = "prompt") {
    const auto prompts =
        read_all(concat("{\"", key, "\": \"x\", ", fields, "}"), PromptFormat::jsonl);
    EXPECT_EQ(prompts.at(0).error, "");
    gpt::GenerateOptions run;
    run.seed = 100;
    return prompts.at(0).settings.over(run, 2);
}

std::string prompts_error_of(const std::string& fields) {
    const auto prompts = read_all("{\"prompt\": \"x\", " + fields + "}", PromptFormat::jsonl);
    EXPECT_EQ(prompts.at(0).error_code, "invalid_value");
    return prompts.at(0).error;
}

}  // namespace

TEST(PromptReader, LinesHaveSamplingFields) {
    gpt::GenerateOptions options = options_of(
        R"("temperature": 0, "top_p": 0.5, "top_k": 3, "min_p": 0.1, "repetition_penalty": 1.5, )"
        R"("presence_penalty": -1, "frequency_penalty": 2, "logit_bias": {"5": -100, "6": 1.5}, )"
        R"("max_tokens": 7, "seed": 9, "n": 3, "stop": "END", "logprobs": true, "top_logprobs": 4)");
    const gpt::SamplerOptions wanted = {.temperature = 0,
                                        .top_k = 3,
                                        .top_p = 0.5,
                                        .min_p = 0.1,
                                        .repetition_penalty = 1.5,
                                        .presence_penalty = -1,
                                        .frequency_penalty = 2,
                                        .logit_bias = {{5, -100}, {6, 1.5}}};
    EXPECT_EQ(options.sampler, wanted);
    EXPECT_EQ(options.max_tokens, 7);
    EXPECT_EQ(options.seed, 9);
    EXPECT_EQ(options.samples, 3);
    EXPECT_EQ(options.stop, std::vector<std::string>{"END"});
    EXPECT_EQ(options.logprobs, 4);
    EXPECT_FALSE(options.ignore_eos);
    options = options_of(
        R"("max_completion_tokens": 8, "stop": ["a", "b"], "logprobs": true, "ignore_eos": true)");
    EXPECT_TRUE(options.ignore_eos);
    EXPECT_EQ(options.max_tokens, 8);
    EXPECT_EQ(options.stop, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(options.logprobs, 0);
    // null, as clients send it, and fields of other names are no values.
    options = options_of(R"("temperature": null, "seed": null, "model": "x", "stream": true)");
    EXPECT_EQ(options.sampler, gpt::SamplerOptions());
    EXPECT_EQ(options.seed, 102);
    EXPECT_EQ(options.logprobs, std::nullopt);
    // The temperature of a transcript's segment is that of its decoding.
    EXPECT_EQ(options_of(R"("temperature": 0.0)", "text").sampler.temperature, 0.8);
}

TEST(PromptReader, WrongFieldsAreTheLinesError) {
    const std::pair<const char*, const char*> wrong[] = {
        {R"("temperature": "hot")", "temperature: expected a number from 0 to 100, found string"},
        {R"("temperature": -1)", "temperature: expected a number from 0 to 100, found -1"},
        {R"("top_p": 0)", "top_p: expected a number"},
        {R"("top_k": 1.5)", "top_k: expected a whole number from 0 to 1073741824, found 1.5"},
        {R"("n": 0)", "n: expected a whole number from 1 to 1024, found 0"},
        {R"("max_tokens": true)", "max_tokens: expected a whole number"},
        {R"("max_completion_tokens": 0)", "max_completion_tokens: expected"},
        {R"("seed": -3)", "seed: expected a whole number"},
        {R"("stop": [""])", "stop: expected a text"},
        {R"("stop": 3)", "stop: expected a text"},
        {R"("logprobs": 3)", "logprobs: expected true or false, found number; their number is top"},
        {R"("ignore_eos": 1)", "ignore_eos: expected true or false, found number"},
        {R"("top_logprobs": 3)", "top_logprobs needs logprobs"},
        {R"("logprobs": true, "top_logprobs": 21)", "top_logprobs: expected a whole number from 0"},
        {R"("logit_bias": [1])", "logit_bias: expected an object, found array"},
        {R"("logit_bias": {"x": 1})", "logit_bias: expected names that are ids"},
        {R"("logit_bias": {"-1": 1})", "logit_bias: expected names that are ids"},
        {R"("logit_bias": {"1": 101})", "logit_bias: expected a number from -100 to 100"},
        {R"("presence_penalty": 3)", "presence_penalty: expected a number from -2 to 2"},
        {R"("mirostat": 1)", "mirostat: expected 0 or 2"},
        {R"("id": [1])", "id: expected a text or a number, found array"}};
    for (const auto& [fields, error] : wrong)
        EXPECT_EQ(prompts_error_of(fields).rfind(error, 0), 0u)
            << fields << ": " << prompts_error_of(fields);
    const auto deep = read_all(std::string(100, '['), PromptFormat::jsonl);
    EXPECT_EQ(deep.at(0).error_code, "invalid_json");
}

TEST(SamplerSettings, AModelsOwnDefaults) {
    gpt::SamplerOptions options;
    gpt::SamplerSettings settings;
    settings.read(gpt::SamplingDefaults{{"temperature", 0.6}, {"top_k", 20}}, "model");
    settings.apply_to(options);
    EXPECT_EQ(options.temperature, 0.6);
    EXPECT_EQ(options.top_k, 20);
    EXPECT_EQ(options.top_p, 0.95);
    EXPECT_THROW(settings.read(gpt::SamplingDefaults{{"top_k", 20.5}}, "model"), Error);
    EXPECT_THROW(settings.read(gpt::SamplingDefaults{{"top_p", 2}}, "model"), Error);
}

TEST(SamplerSettings, AGgufFilesDefaults) {
    test::GgufWriter out;
    out.text("general.architecture", "llama");
    out.u32("general.sampling.top_k", 7);
    out.u32("general.sampling.mirostat", 2);
    out.f32("general.sampling.temp", 0.5f);
    out.f32("general.sampling.penalty_repeat", 1.25f);
    out.f32("general.sampling.xtc_probability", 0.75f);
    const test::TemporaryDirectory directory;
    test::write_text(directory.path() / "model.gguf", out.bytes());
    gpt::SamplerOptions options;
    gpt::SamplerSettings settings;
    settings.read(gpt::sampling_defaults_of(GgufFile(directory.path() / "model.gguf")), "model");
    settings.apply_to(options);
    const gpt::SamplerOptions wanted = {.temperature = 0.5,
                                        .top_k = 7,
                                        .repetition_penalty = 1.25,
                                        .xtc_probability = 0.75,
                                        .mirostat = 2};
    EXPECT_EQ(options, wanted);
}

TEST(AnswerLine, HoldsTheAnswer) {
    const auto tokenizer = Tokenizer::load(test::source_dir() / "models/gpt-demo");
    gpt::Completion answer;
    answer.text = "b\n\"c\"";
    answer.tokens = tokenizer->encode(" the sea");
    ASSERT_EQ(answer.tokens.size(), 2u);
    answer.logprobs = {-0.5, -1};
    answer.likeliest = {{{answer.tokens[0], -0.5}}, {{answer.tokens[0], -0.75}}};
    answer.finish = gpt::Finish::context_full;
    answer.prompt_tokens = 5;
    answer.seconds_to_first_token = 0.25;
    gpt::Prompt prompt;
    prompt.text = "a";
    prompt.metadata = R"({"id":"q","source":"s"})";
    const std::string ids = concat(answer.tokens[0], ",", answer.tokens[1]);
    EXPECT_EQ(gpt::answer_line(prompt, 3, answer, {answer.text}, {}, *tokenizer),
              R"({"id":"q","source":"s","index":3,"text":"b\n\"c\"","tokens":[)" + ids +
                  R"(],"finish_reason":"length","prompt_tokens":5,"cached_tokens":0,)"
                  R"("completion_tokens":2,"seconds_to_first_token":0.25,)"
                  R"("tokens_per_second":null})"
                  "\n");
    gpt::GenerateOptions options;
    options.logprobs = 1;
    const auto line = nlohmann::json::parse(
        gpt::answer_line(prompt, 0, answer, {answer.text}, options, *tokenizer));
    const auto& content = line["logprobs"]["content"];
    ASSERT_EQ(content.size(), 2u);
    EXPECT_EQ(content[1]["token"], " sea");
    EXPECT_EQ(content[1]["logprob"], -1);
    EXPECT_EQ(content[1]["bytes"], nlohmann::json::parse("[32, 115, 101, 97]"));
    EXPECT_EQ(content[1]["top_logprobs"].dump(),
              R"([{"bytes":[32,116,104,101],"logprob":-0.75,"token":" the"}])");
    prompt.fail("invalid_value", "bad");
    EXPECT_EQ(gpt::error_line(prompt),
              R"({"id":"q","source":"s","error":{"message":"bad","code":"invalid_value"}})"
              "\n");
}
