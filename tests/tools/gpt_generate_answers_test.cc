// What gpt-generate draws, and its lines of JSON, on the real binary.
#include <algorithm>
#include <map>

#include "support/family_folder.h"
#include "tools/gpt_generate.h"

using namespace hark::test;

TEST(GptGenerate, JsonLinesCarryTheirSource) {
    const ProcessResult result = generate(
        greedy_and({"--input-format", "jsonl", "--logprobs", "2"}),
        "{\"source\": \"a.wav\", \"start\": 0.5, \"end\": 2, \"text\": \" The king said\"}\n"
        "{\"prompt\": \"\", \"id\": 7}\n");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::vector<std::string> lines = lines_of(result.out);
    ASSERT_EQ(lines.size(), 2u) << result.out;
    const json first = json::parse(lines[0]), second = json::parse(lines[1]);
    EXPECT_EQ(first["id"], 0);
    EXPECT_EQ(first["source"], "a.wav");
    EXPECT_EQ(first["start"], 0.5);
    EXPECT_EQ(first["index"], 0);
    EXPECT_EQ(first["tokens"].size(), 20u);
    EXPECT_EQ(first["completion_tokens"], 20);
    EXPECT_EQ(first["prompt_tokens"], 3);
    EXPECT_EQ(first["cached_tokens"], 0);
    EXPECT_GT(first["seconds_to_first_token"], 0);
    EXPECT_GT(first["tokens_per_second"], 0);
    EXPECT_EQ(first["finish_reason"], "length");
    const json& content = first["logprobs"]["content"];
    ASSERT_EQ(content.size(), 20u);
    std::string text;
    for (const json& token : content) {
        text += token["token"];
        ASSERT_EQ(token["top_logprobs"].size(), 2u);
        EXPECT_EQ(token["top_logprobs"][0]["token"], token["token"]);  // greedy
        EXPECT_EQ(token["top_logprobs"][0]["logprob"], token["logprob"]);
        EXPECT_EQ(token["bytes"].size(), token["token"].get<std::string>().size());
    }
    EXPECT_EQ(first["text"], text);
    EXPECT_EQ(second["id"], 7);
    EXPECT_EQ(second["text"], "");
    EXPECT_EQ(second["finish_reason"], "stop");
    EXPECT_EQ(second["completion_tokens"], 0);
}

// Guessed tokens change no text, of one prompt and of many.
TEST(GptGenerate, DraftTokensChangeNothing) {
    const std::string prompt = "The king said to the queen: the king said to the queen: the king";
    for (const char* temperature : {"0", "0.8"}) {
        std::vector<std::string> one = {
            "-p", prompt, "--max-tokens", "60", "--temperature", temperature, "--n", "2"};
        const ProcessResult plain = generate(one, "");
        one.insert(one.end(), {"--prompt-lookup", "7"});
        const ProcessResult drafted = generate(one, "");
        EXPECT_EQ(drafted.exit_code, 0) << drafted.err;
        EXPECT_EQ(drafted.out, plain.out);
    }
    const std::string lines = prompt + "\nOnce upon a time there was a king. Once upon\n\n";
    EXPECT_EQ(generate(greedy_and({"--input-format", "lines", "--prompt-lookup", "3"}), lines).out,
              generate(greedy_and({"--input-format", "lines"}), lines).out);
    const ProcessResult wrong =
        generate(greedy_and({"--prompt-lookup", "3", "--prompt-cache", "file"}), "a");
    EXPECT_EQ(wrong.exit_code, 2);
    expect_contains(wrong.err, "do not work with --prompt-cache");
}

TEST(GptGenerate, OneBadLineOfThreeAndTheOthersAreDone) {
    const ProcessResult result = generate(greedy_and({"--input-format", "jsonl"}),
                                          "{\"text\": \"a\"}\n{\"text\": }\n{\"text\": \"b\"}\n");
    EXPECT_EQ(result.exit_code, 1);
    const std::vector<std::string> lines = lines_of(result.out);
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_TRUE(json::parse(lines[0]).contains("text"));
    const json error = json::parse(lines[1]);
    EXPECT_EQ(error["id"], 1);
    EXPECT_EQ(error["error"]["code"], "invalid_json");
    EXPECT_TRUE(json::parse(lines[2]).contains("text"));
    expect_contains(result.err, "gpt-generate: stdin: line 2: expected a JSON object");
}

TEST(GptGenerate, ErrorsOfTheStageBeforeArePassedOn) {
    const ProcessResult result = generate(
        {"--input-format", "jsonl"}, "{\"source\": \"b.wav\", \"error\": \"cannot read it\"}\n");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(json::parse(result.out), json::parse(R"({"id": 0, "source": "b.wav",
                              "error": {"message": "cannot read it", "code": "earlier_stage"}})"));
    expect_contains(result.err, "cannot read it");
}

TEST(GptGenerate, SameSeedSameBytes) {
    const std::vector<std::string> options = {"--seed", "3", "--max-tokens", "30"};
    const std::string input = "The old woman\n";
    const ProcessResult first = generate(options, input);
    EXPECT_EQ(first.exit_code, 0) << first.err;
    EXPECT_EQ(generate(options, input).out, first.out);
    EXPECT_NE(generate({"--seed", "4", "--max-tokens", "30"}, input).out, first.out);
}

TEST(GptGenerate, StopStringsEndTheText) {
    const std::string whole = generate(kGreedy, "Once upon a time").out;
    const ProcessResult cut =
        generate(greedy_and({"--stop", "zzz", "--stop", " pleased"}), "Once upon a time");
    ASSERT_NE(whole.find(" pleased"), std::string::npos) << whole;
    EXPECT_EQ(cut.out, whole.substr(0, whole.find(" pleased")) + "\n");
    const ProcessResult reason =
        generate(greedy_and({"--stop", " pleased", "--input-format", "jsonl"}),
                 "{\"text\": \"Once upon a time\"}");
    EXPECT_EQ(json::parse(reason.out)["finish_reason"], "stop");
}

// The answers as objects, a line each.
namespace {

std::vector<json> answers(const ProcessResult& result) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<json> objects;
    for (const std::string& line : lines_of(result.out)) objects.push_back(untimed(line));
    return objects;
}

}  // namespace

TEST(GptGenerate, SamplesOfAPromptAreOneLineEach) {
    const std::vector<std::string> plain = {"-p",    "The old woman", "-f",
                                            "jsonl", "--max-tokens",  "12"};
    std::vector<std::string> three = plain;
    three.insert(three.end(), {"--n", "3"});
    const std::vector<json> one = answers(generate(plain, "")),
                            samples = answers(generate(three, ""));
    ASSERT_EQ(samples.size(), 3u);
    EXPECT_EQ(samples[0], one.at(0));
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(samples[i]["id"], 0);
        EXPECT_EQ(samples[i]["index"], i);
    }
    EXPECT_NE(samples[0]["text"], samples[1]["text"]);
    EXPECT_NE(samples[1]["text"], samples[2]["text"]);
    std::vector<std::string> text = {"-p", "The old woman", "--max-tokens", "12", "--n", "2"};
    EXPECT_EQ(generate(text, "").out, samples[0]["text"].get<std::string>() + "\n" +
                                          samples[1]["text"].get<std::string>() + "\n");
}

// A line's fields give what the flags give, whatever the lines before it ask for.
TEST(GptGenerate, FieldsOfALineAreFlags) {
    const std::string lines =
        R"({"prompt": "The king", "seed": 5, "max_tokens": 9})"
        "\n"
        R"({"prompt": "The king", "temperature": 0, "max_completion_tokens": 9})"
        "\n"
        R"({"prompt": "The king", "temperature": 0, "max_tokens": 9, "frequency_penalty": 2,)"
        R"( "logit_bias": {"260": -100}})"
        "\n"
        R"({"prompt": "The king", "seed": 5, "max_tokens": 9, "n": 2, "typical_p": 0.5})"
        "\n";
    const std::vector<json> found = answers(generate({"--input-format", "jsonl"}, lines));
    ASSERT_EQ(found.size(), 5u);
    const auto alone = [](std::vector<std::string> flags) {
        flags.insert(flags.end(), {"-p", "The king", "--max-tokens", "9", "-f", "jsonl"});
        return answers(generate(flags, ""));
    };
    EXPECT_EQ(found[0]["text"], alone({"--seed", "5"})[0]["text"]);
    EXPECT_EQ(found[1]["text"], alone({"--temperature", "0"})[0]["text"]);
    EXPECT_EQ(found[2]["text"], alone({"--temperature", "0", "--frequency-penalty", "2",
                                       "--logit-bias", "260=-100"})[0]["text"]);
    const std::vector<json> typical = alone({"--seed", "5", "--n", "2", "--typical-p", "0.5"});
    EXPECT_EQ(found[3]["text"], typical[0]["text"]);
    EXPECT_EQ(found[4]["text"], typical[1]["text"]);
    EXPECT_NE(found[1]["text"], found[2]["text"]);
    EXPECT_NE(found[0]["text"], found[3]["text"]);
}

TEST(GptGenerate, AWrongFieldIsItsLinesError) {
    const ProcessResult result =
        generate(greedy_and({"--input-format", "jsonl"}),
                 "{\"prompt\": \"a\", \"id\": \"first\", \"temperature\": \"hot\"}\n"
                 "{\"prompt\": \"b\", \"logit_bias\": {\"4096\": 1}}\n{\"prompt\": \"c\"}\n");
    EXPECT_EQ(result.exit_code, 1);
    const std::vector<std::string> lines = lines_of(result.out);
    ASSERT_EQ(lines.size(), 3u);
    const json first = json::parse(lines[0]), second = json::parse(lines[1]);
    EXPECT_EQ(first["id"], "first");
    EXPECT_EQ(first["error"]["code"], "invalid_value");
    EXPECT_EQ(second["id"], 1);
    EXPECT_EQ(second["error"]["code"], "model_error");
    EXPECT_EQ(json::parse(lines[2])["id"], 2);
    EXPECT_TRUE(json::parse(lines[2]).contains("text"));
    expect_contains(result.err, "gpt-generate: stdin: line 1: temperature: expected a number");
    expect_contains(result.err,
                    "gpt-generate: stdin: line 2: logit bias: expected tokens below 4096");
}

// Every flag changes what is drawn, or what a greedy text is.
TEST(GptGenerate, EveryFilterHasItsFlag) {
    const auto text = [](std::vector<std::string> flags) {
        flags.insert(flags.end(), {"-p", "the the the the the", "--max-tokens", "40"});
        const ProcessResult result = generate(flags, "");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return result.out;
    };
    const std::string drawn = text({}), greedy = text({"--temperature", "0"});
    for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
             {"--typical-p", "0.3"},
             {"--xtc-probability", "1"},
             {"--mirostat", "2", "--mirostat-tau", "1", "--mirostat-eta", "0.5"},
             {"--min-p", "0.4"}})
        EXPECT_NE(text(flags), drawn) << flags[0];
    for (std::vector<std::string> flags : std::vector<std::vector<std::string>>{
             {"--presence-penalty", "2"},
             {"--frequency-penalty", "1.5"},
             {"--dry-multiplier", "3", "--dry-base", "2", "--dry-allowed-length", "1"},
             {"--repetition-penalty", "1.5"},
             {"--logit-bias", "260=-100", "--logit-bias", "278=5.5"}}) {
        flags.insert(flags.end(), {"--temperature", "0"});
        EXPECT_NE(text(flags), greedy) << flags[0];
    }
    // Without effect: the same text from the other path.
    EXPECT_EQ(text({"--xtc-probability", "1", "--xtc-threshold", "0.6"}), drawn);
    EXPECT_EQ(text({"--logit-bias", "5=0"}), drawn);
}

TEST(GptGenerate, IgnoreEosGoesOn) {
    const auto count = [](std::vector<std::string> flags) {
        flags.insert(flags.end(), {"-p", "x", "-f", "jsonl", "--max-tokens", "7", "--temperature",
                                   "0", "--logit-bias", "4095=100"});
        return answers(generate(flags, "")).at(0)["completion_tokens"].get<int>();
    };
    EXPECT_EQ(count({}), 0);
    EXPECT_EQ(count({"--ignore-eos"}), 7);
}

TEST(GptGenerate, StatsAreTables) {
    const ProcessResult result = generate(
        greedy_and({"--stats", "--input-format", "lines", "--n", "2"}), "The king\nOnce\n");
    EXPECT_EQ(result.exit_code, 0);
    const std::vector<std::string> lines = lines_of(result.err);
    ASSERT_GT(lines.size(), 6u) << result.err;
    EXPECT_EQ(
        lines[0],
        "answer    prompt tokens  generated tokens  seconds to first token  tokens per second");
    EXPECT_EQ(lines[1].rfind("0.0                   2                20  ", 0), 0u) << lines[1];
    EXPECT_EQ(lines[4].rfind("1.1  ", 0), 0u) << lines[4];
    EXPECT_EQ(lines[5], "stage        spans   seconds  % of the run");
    for (const char* const row : {"\nprefill ", "\nstep ", "\nkeys and values ", "\nweights "})
        expect_contains(result.err, row);
}

// From the flag, else the model's generation_config.json, else the tool's own default.
TEST(GptGenerate, AModelHasSamplingDefaults) {
    const TemporaryDirectory folder;
    const std::string model = (folder.path() / "tiny").string();
    write_tiny_qwen2(model);
    const auto text = [&](std::vector<std::string> flags) {
        flags.insert(flags.end(),
                     {"-m", model, "-p", "Hello", "--max-tokens", "20", "--threads", "1"});
        const ProcessResult result = run_tool("gpt-generate", flags, "");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return result.out;
    };
    const std::string greedy = text({"--temperature", "0"}), drawn = text({});
    ASSERT_NE(greedy, drawn);
    const std::filesystem::path config = folder.path() / "tiny/generation_config.json";
    write_text(config, R"({"temperature": 1.0, "top_k": 1, "top_p": null, "do_sample": true})");
    EXPECT_EQ(text({}), greedy);
    EXPECT_EQ(text({"--temperature", "0.8", "--top-k", "40"}), drawn);
    write_text(config, R"({"top_k": "many"})");
    const ProcessResult wrong = run_tool("gpt-generate", {"-m", model, "-p", "x"}, "");
    EXPECT_EQ(wrong.exit_code, 1);
    expect_contains(wrong.err, "generation_config.json: top_k: expected a number, found string");
    write_text(config, R"({"top_p": 3})");
    const ProcessResult range = run_tool("gpt-generate", {"-m", model, "-p", "x"}, "");
    EXPECT_EQ(range.exit_code, 1);
    expect_contains(range.err, "top_p: expected a number from 1e-09 to 1, found 3");
}

// Written by the first run, read by those that follow, and never changed.
TEST(GptGenerate, APromptCache) {
    const TemporaryDirectory folder;
    const std::string file = folder.path() / "prompt.cache";
    const auto answer = [&](const std::string& prompt, std::vector<std::string> more) {
        more.insert(more.end(), {"--format", "jsonl", "--prompt-cache", file});
        return generate(greedy_and(more), prompt);
    };
    const json first = json::parse(answer("The king said to the queen", {}).out);
    const std::string bytes = read_text(file);
    EXPECT_EQ(first["cached_tokens"], 0);
    const json again = json::parse(answer("The king said to the queen", {}).out);
    EXPECT_EQ(again["text"], first["text"]);
    EXPECT_EQ(again["cached_tokens"], first["prompt_tokens"]);
    const ProcessResult other = answer("A dog", {});
    EXPECT_EQ(other.exit_code, 0);
    expect_contains(other.err, "no part of it was used");
    EXPECT_EQ(read_text(file), bytes);
    const ProcessResult wrong = answer("The king", {"--kv-dtype", "f16"});
    EXPECT_EQ(wrong.exit_code, 1);
    expect_contains(wrong.err, "has keys and values in f32, this run in f16");
    EXPECT_EQ(wrong.out, "");
}

// What prompts have in common is computed once: in whole blocks of 32 tokens where many are
// computed at once.
TEST(GptGenerate, PromptsShareTheirBeginning) {
    std::string shared;
    for (int i = 0; i < 5; ++i) shared += "The king said to the queen that ";
    const std::string prompts = shared + "she\n" + shared + "the dog\nA dog\n";
    for (const char* sequences : {"0", "1"}) {
        const ProcessResult result = generate(greedy_and({"--input-format", "lines", "--format",
                                                          "jsonl", "--max-sequences", sequences}),
                                              prompts);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        const std::vector<std::string> lines = lines_of(result.out);
        ASSERT_EQ(lines.size(), 3u);
        const int cached = json::parse(lines[1])["cached_tokens"];
        EXPECT_GE(cached, 32);
        EXPECT_EQ(cached % 32 == 0, sequences[0] == '0');
        EXPECT_LT(cached, json::parse(lines[1])["prompt_tokens"].get<int>());
        EXPECT_EQ(json::parse(lines[2])["cached_tokens"], 0);
        const std::string alone = generate(greedy_and({}), shared + "the dog").out;
        EXPECT_EQ(json::parse(lines[1])["text"].get<std::string>() + "\n", alone);
    }
}

// Answers are in the order of their prompts, or as they end; errors keep their place.
TEST(GptGenerate, ManyAnswersAtOnce) {
    std::string prompts;
    for (int i = 0; i < 20; ++i)
        prompts +=
            i == 7
                ? "{\"id\": 7, \"prompt\": 3}\n"
                : json{{"id", i}, {"prompt", "The king"}, {"max_tokens", 1 + i * 7 % 10}}.dump() +
                      "\n";
    const auto answers = [&](const std::vector<std::string>& more) {
        std::vector<std::string> arguments = {"--input-format", "jsonl"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const ProcessResult result = generate(greedy_and(arguments), prompts);
        EXPECT_EQ(result.exit_code, 1);
        std::map<int, json> by_id;
        std::vector<int> order;
        for (const std::string& line : lines_of(result.out)) {
            const json answer = json::parse(line);
            order.push_back(answer["id"]);
            by_id[order.back()] = answer.value("tokens", json());
        }
        EXPECT_EQ(by_id.size(), 20u);
        return std::pair(order, by_id);
    };
    const auto [order, texts] = answers({});
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    for (const auto& [id, tokens] : texts)
        if (id != 7) {
            EXPECT_EQ(tokens.size(), static_cast<size_t>(1 + id * 7 % 10));
        }
    EXPECT_EQ(answers({"--max-sequences", "1"}).second, texts);
    const auto [unordered, same] = answers({"--unordered", "--batch-invariant"});
    EXPECT_FALSE(std::is_sorted(unordered.begin(), unordered.end()));
    EXPECT_EQ(same, texts);
}

TEST(GptGenerate, LogprobsAreNotDroppedSilently) {
    const ProcessResult result =
        generate(greedy_and({"--input-format", "jsonl", "--format", "text"}),
                 "{\"prompt\": \"The king\", \"logprobs\": true}\n{\"prompt\": \"The king\"}\n");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "stdin: line 1: logprobs: true needs --format jsonl");
    EXPECT_EQ(lines_of(result.out).size(), 2u);
}

TEST(GptGenerate, AWhisperModelNamesItsTool) {
    const ProcessResult result = run_tool("gpt-generate", {"-m", "whisper-demo", "-p", "x"});
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err,
                    "this is a Whisper model, expected a language model; use "
                    "whisper-transcribe");
}
