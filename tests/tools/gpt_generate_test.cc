// gpt-generate's contract, on the real binary.
#include <algorithm>

#include "tools/gpt_generate.h"

using namespace hark::test;

TEST(GptGenerate, GreedyTokensEqualTransformersInEveryExactDtype) {
    for (const char* dtype : {"auto", "f32"}) {
        for (int i : {0, 5, 11, 19}) {
            const json wanted = golden_case(i);
            const ProcessResult result = generate({"--temperature", "0", "--max-tokens", "200",
                                                   "--input-format", "jsonl", "--dtype", dtype},
                                                  json{{"prompt", wanted["prompt"]}}.dump() + "\n");
            ASSERT_EQ(result.exit_code, 0) << result.err;
            auto tokens = wanted["tokens"].get<std::vector<int>>();
            tokens.erase(std::find(tokens.begin(), tokens.end(), 4095), tokens.end());
            EXPECT_EQ(json::parse(result.out)["tokens"], tokens) << wanted["prompt"];
        }
    }
}

TEST(GptGenerate, WritesOnlyTheContinuation) {
    const ProcessResult result = generate(kGreedy, "Once upon a time\n");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_TRUE(result.out.ends_with("\n"));
    EXPECT_EQ(result.out.find("Once upon"), std::string::npos);
    EXPECT_EQ(generate(kGreedy, "Once upon a time").out, result.out);
    EXPECT_EQ(generate(greedy_and({"--echo"}), "Once upon a time\n").out,
              "Once upon a time" + result.out);
    EXPECT_EQ(generate(greedy_and({"--prompt", "Once {} a time"}), "upon\n").out, result.out);
}

TEST(GptGenerate, LinesAreOneAnswerEach) {
    const ProcessResult result = generate(greedy_and({"--input-format", "lines"}),
                                          "Once upon a time\n\nCHAPTER I.\nThe king\n");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::vector<std::string> lines = lines_of(result.out);
    ASSERT_EQ(lines.size(), 4u) << result.out;
    EXPECT_EQ(lines[0] + "\n",
              generate(greedy_and({"--input-format", "lines"}), "Once upon a time\n").out);
    EXPECT_EQ(lines[1], "");
    std::string flat = generate(kGreedy, "CHAPTER I.").out;
    flat.pop_back();
    std::replace(flat.begin(), flat.end(), '\n', ' ');
    EXPECT_EQ(lines[2], flat);
    EXPECT_FALSE(lines[3].empty());
}

TEST(GptGenerate, AnyInputGivesAnyFormat) {
    const std::string text = generate(kGreedy, "The king").out;
    const ProcessResult object = generate(greedy_and({"--format", "jsonl"}), "The king\n");
    EXPECT_EQ(object.exit_code, 0) << object.err;
    EXPECT_EQ(json::parse(object.out)["text"].get<std::string>() + "\n", text);
    const ProcessResult objects =
        generate(greedy_and({"--input-format", "lines", "-f", "jsonl"}), "The king\n\n");
    EXPECT_EQ(lines_of(objects.out).size(), 2u) << objects.out;
    EXPECT_EQ(untimed(lines_of(objects.out)[0]), untimed(object.out));
    const ProcessResult lines =
        generate(greedy_and({"--input-format", "jsonl", "--format", "text"}),
                 "{\"prompt\": \"The king\"}\n{\"error\": \"broken\"}\n");
    EXPECT_EQ(lines.exit_code, 1);
    EXPECT_EQ(lines.out,
              generate(greedy_and({"--input-format", "lines"}), "The king\n").out + "\n");
    expect_contains(lines.err, "broken");
}

TEST(GptGenerate, AnArgumentIsMeantAsThePrompt) {
    const ProcessResult result = generate({"Once upon a time"}, "");
    EXPECT_EQ(result.exit_code, 2);
    expect_contains(result.err, "-p 'Once upon a time'");
    EXPECT_EQ(generate(greedy_and({"-p", "The king"}), "").out, generate(kGreedy, "The king").out);
}

TEST(GptGenerate, EmptyPromptGivesNothing) {
    for (const char* input : {"", "\n", "\r\n\n"}) {
        const ProcessResult result = generate({}, input);
        EXPECT_EQ(result.exit_code, 0);
        EXPECT_EQ(result.out, "");
        EXPECT_EQ(result.err, "gpt-generate: stdin: the prompt is empty, and so is the answer\n");
        EXPECT_EQ(generate({"--quiet"}, input).err, "");
    }
    const ProcessResult filled = generate({"--prompt", "Say {}"}, "");
    EXPECT_EQ(filled.out, "");
    expect_contains(filled.err, "the prompt is empty");
    for (const char* format : {"jsonl", "lines"}) {
        const ProcessResult none = generate({"--input-format", format}, "");
        EXPECT_EQ(none.exit_code, 0) << format;
        EXPECT_EQ(none.out + none.err, "") << format;
    }
}

TEST(GptGenerate, WhatIsNoTextIsRefused) {
    const std::string sound = read_text(samples_dir() / "key.wav");
    for (const char* format : {"text", "lines", "jsonl"}) {
        const ProcessResult result = generate({"--input-format", format}, sound);
        EXPECT_EQ(result.exit_code, 1) << format;
        EXPECT_EQ(result.out, "") << format;
        EXPECT_EQ(result.err,
                  "gpt-generate: stdin: this is no text (got a zero byte at offset 7, expected "
                  "UTF-8); hark transcribe makes text of a recording\n")
            << format;
    }
    // A stray one is part of the prompt.
    EXPECT_EQ(
        generate(kGreedy, std::string(2000, ' ') + std::string("a\0b", 3)).err.find("no text"),
        std::string::npos);
}

TEST(GptGenerate, APromptThatDoesNotFitIsAnErrorWithBothFigures) {
    std::string prompt;
    for (int i = 0; i < 600; ++i) prompt += " sea";
    const ProcessResult whole = generate({"--n", "2"}, prompt);
    EXPECT_EQ(whole.exit_code, 1);
    EXPECT_EQ(whole.out, "");
    EXPECT_EQ(lines_of(whole.err).size(), 1u) << whole.err;
    expect_contains(whole.err,
                    "the prompt's 600 tokens do not fit the context (got 600, expected "
                    "at most 512)");
    // The others are still answered.
    const ProcessResult lines =
        generate({"--input-format", "lines", "--context", "40", "--max-tokens", "20"},
                 "The king\n" + prompt.substr(0, 4 * 30) + "\nThe king\n");
    EXPECT_EQ(lines.exit_code, 1);
    EXPECT_EQ(lines_of(lines.out).size(), 3u) << lines.out;
    EXPECT_EQ(lines_of(lines.out)[1], "");
    EXPECT_EQ(lines_of(lines.err).size(), 1u) << lines.err;
    expect_contains(lines.err,
                    "the prompt's 30 tokens and an answer of 20 do not fit the context "
                    "(got 49 without the last one, expected at most 40)");
    const ProcessResult object =
        generate({"--input-format", "jsonl"}, json{{"text", prompt}, {"id", 3}}.dump() + "\n");
    EXPECT_EQ(object.exit_code, 1);
    EXPECT_EQ(json::parse(object.out)["id"], 3);
    EXPECT_EQ(json::parse(object.out)["error"]["code"], "context_length_exceeded");
    expect_contains(json::parse(object.out)["error"]["message"], "do not fit the context");
}

TEST(GptGenerate, TheContextIsTheModelsOrLess) {
    const ProcessResult more = generate({"--context", "513"}, "The king");
    EXPECT_EQ(more.exit_code, 1);
    expect_contains(more.err, "--context: expected at most the model's 512 positions, got 513\n");
    const ProcessResult cut =
        generate({"--temperature", "0", "--context", "12", "--format", "jsonl"}, "The king");
    EXPECT_EQ(cut.exit_code, 0) << cut.err;
    EXPECT_EQ(json::parse(cut.out)["finish_reason"], "length");
    EXPECT_EQ(json::parse(cut.out)["tokens"].size(), 11u);
}

// The log probabilities differ by the rounding of keys and values alone.
TEST(GptGenerate, TypesOfKeysAndValues) {
    const auto logprobs = [](const std::string& type) {
        const ProcessResult result =
            generate(greedy_and({"--format", "jsonl", "--logprobs", "0", "--kv-dtype", type}),
                     "Once upon a time");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        std::vector<double> values;
        const json answer = json::parse(result.out);
        for (const json& token : answer["logprobs"]["content"])
            values.push_back(token["logprob"].get<double>());
        return values;
    };
    const std::vector<double> exact = logprobs("f32");
    EXPECT_EQ(logprobs("auto"), exact);
    for (const auto& [type, tolerance] :
         {std::pair{"f16", 2e-3}, std::pair{"bf16", 2e-2}, std::pair{"q8_0", 4e-2}}) {
        const std::vector<double> rounded = logprobs(type);
        EXPECT_NE(rounded, exact) << type;
        EXPECT_NEAR(rounded[3], exact[3], tolerance) << type;
    }
}

TEST(GptGenerate, APromptWithoutAPlaceForInputNeedsNone) {
    const std::string wanted = generate(kGreedy, "Once upon a time").out;
    const std::string command = "gpt-generate --model '" + kGptDemo +
                                "' --threads 1 --temperature 0 --max-tokens 20 "
                                "--prompt 'Once upon a time' ";
    // As cron starts it, with stdin closed, and from a pipe that nobody writes to and closes.
    EXPECT_EQ(run_shell(command + "< /dev/null").out, wanted);
    EXPECT_EQ(run_shell(command + "<&-").out, wanted);
    const ProcessResult open =
        run_shell("directory=$(mktemp -d); mkfifo $directory/in; exec 3<> $directory/in; " +
                  ("timeout 60 " + command) + "< $directory/in; rm -r $directory");
    EXPECT_EQ(open.out, wanted) << open.err;
    // What is on stdin is the next command's.
    EXPECT_EQ(run_shell(command + "> /dev/null; cat", "still here").out, "still here");
}

TEST(GptGenerate, FullContextSaysSo) {
    std::string prompt;
    for (int i = 0; i < 505; ++i) prompt += " the";
    const ProcessResult result =
        generate({"--temperature", "0", "--repetition-penalty", "2", "--input-format", "jsonl"},
                 json{{"text", prompt}}.dump());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(json::parse(result.out)["finish_reason"], "length");
    EXPECT_EQ(json::parse(result.out)["tokens"].size(), 8u);
    expect_contains(result.err, "context is full");
}

TEST(GptGenerate, WrongCommandLinesExit2) {
    const std::vector<std::vector<std::string>> wrong = {
        {"--no-such-flag"},
        {"--temp", "0"},
        {"--temperature", "-1"},
        {"--temperature", "warm"},
        {"--top-p", "0"},
        {"--top-p", "1.5"},
        {"--min-p", "2"},
        {"--top-k", "-1"},
        {"--max-tokens", "-1"},
        {"--context", "-1"},
        {"--kv-dtype", "int8"},
        {"--stop", ""},
        {"--input-format", "json"},
        {"--format", "lines"},
        {"--logprobs", "2"},
        {"--echo", "--input-format", "jsonl"},
        {"--input-format", "lines", "--prompt", "no place for the input"},
        {"--input-format", "jsonl", "--prompt", "nor here"},
        {"--dtype", "f64"},
        {"--device", "tpu"},
        {"--max-tokens"},
        {"an-argument"},
        {"--repetition-penalty", "0"}};
    for (const auto& arguments : wrong) {
        const ProcessResult result = generate(arguments, "x");
        EXPECT_EQ(result.exit_code, 2) << arguments[0] << ": " << result.err;
        EXPECT_EQ(result.out, "") << arguments[0];
        EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
        expect_contains(result.err, "gpt-generate: ");
        expect_contains(result.err, "--help");
    }
}

TEST(GptGenerate, Fp8WithoutItsGpuNamesInt8) {
    const ProcessResult result = generate({"--dtype", "fp8", "--device", "cpu"}, "x");
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_EQ(result.out, "");
    expect_contains(result.err, "found the CPU; use --dtype int8");
}

TEST(GptGenerate, HelpAndVersionOnStdout) {
    const ProcessResult help = run_tool("gpt-generate", {"--help-all"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_EQ(help.err, "");
    for (const char* flag :
         {"--model", "--prompt", "--input-format", "--format", "--echo", "--max-tokens",
          "--temperature", "--top-k", "--top-p", "--min-p", "--repetition-penalty", "--seed",
          "--stop", "--logprobs", "--context", "--kv-dtype", "--device", "--dtype", "--threads"})
        expect_contains(help.out, flag);
    const ProcessResult version = run_tool("gpt-generate", {"--version"});
    EXPECT_EQ(version.exit_code, 0);
    expect_contains(version.out, "gpt-generate (hark) ");
}

TEST(GptGenerate, MissingModelExits1) {
    const ProcessResult path = run_tool("gpt-generate", {"--model", "./nowhere"}, "x");
    EXPECT_EQ(path.exit_code, 1);
    expect_contains(path.err, "./nowhere");
    const ProcessResult name = run_tool("gpt-generate", {"--model", "no-such-model"}, "x");
    EXPECT_EQ(name.exit_code, 1);
    expect_contains(name.err, "no model 'no-such-model'");
    const TemporaryDirectory home;
    const ProcessResult none = run_shell("HOME=" + home.path().string() + " gpt-generate", "x");
    EXPECT_EQ(none.exit_code, 1);
    expect_contains(none.err, "--model demo");
    EXPECT_EQ(path.out + name.out + none.out, "");
}

TEST(GptGenerate, BrokenModelsExit1AndNameTheFile) {
    const auto expect_failure = [](const std::string& file, const std::string& content,
                                   const std::string& message) {
        const TemporaryDirectory directory;
        for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"})
            if (name != file)
                std::filesystem::create_symlink(std::filesystem::path(kGptDemo) / name,
                                                directory.path() / name);
        if (!content.empty()) write_text(directory.path() / file, content);
        const ProcessResult result =
            run_tool("gpt-generate", {"--model", directory.path().string()}, "x");
        EXPECT_EQ(result.exit_code, 1) << file;
        EXPECT_EQ(result.out, "");
        expect_contains(result.err, message);
    };
    expect_failure("config.json", "",
                   "no model in this folder (got model.safetensors, tokenizer.json, expected "
                   "config.json, model.safetensors and tokenizer.json)");
    expect_failure("config.json", "garbage", "config.json: expected a JSON object");
    expect_failure("tokenizer.json", "", "expected tokenizer.json, or vocab.json and merges.txt");
    expect_failure("tokenizer.json", "[]", "tokenizer.json: expected a JSON object, found array");
    expect_failure("model.safetensors", "", "model.safetensors");
    expect_failure("model.safetensors", "garbage garbage", "expected a safetensors file");
    const std::string whole = read_text(std::filesystem::path(kGptDemo) / "model.safetensors");
    expect_failure("model.safetensors", whole.substr(0, whole.size() / 2), "truncated");
}

TEST(GptGenerate, ExplicitGpuThatCannotBeHadExits1) {
    const ProcessResult result =
        run_tool("gpt-generate", {"--model", kGptDemo, "--device", "cuda"}, "x");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err, "");
}

TEST(GptGenerate, ClosedPipeEndsQuietly) {
    const ProcessResult result = run_shell(
        "set -o pipefail; gpt-generate --model '" + kGptDemo +
            "' --threads 1 --max-tokens 400 | head -c 5 >/dev/null; echo \"${PIPESTATUS[0]}\" >&2",
        "Once upon a time");
    EXPECT_EQ(result.err, "141\n");
}

TEST(GptGenerate, FullDiskExits1) {
    const ProcessResult result = run_shell(
        "gpt-generate --model '" + kGptDemo + "' --threads 1 --max-tokens 3 > /dev/full", "Once");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "stdout");
}

TEST(GptGenerate, TerminalOnStdin) {
    // script(1) gives the tool a terminal.
    if (!has_command("script")) GTEST_SKIP() << "script(1) is not installed";
    const std::string tool = "gpt-generate --model '" + kGptDemo + "' --threads 1 ";
    const ProcessResult none = run_shell("script -qec \"" + tool + "\" /dev/null </dev/null");
    EXPECT_EQ(none.exit_code, 2) << none.out;
    expect_contains(none.out, "stdin is a terminal, expected a prompt");
    const ProcessResult given =
        run_shell("script -qec \"" + tool +
                  "--temperature 0 --max-tokens 20 --prompt 'Once upon a time'\" /dev/null "
                  "</dev/null");
    EXPECT_EQ(given.exit_code, 0) << given.out;
    expect_contains(given.out, lines_of(generate(kGreedy, "Once upon a time").out)[0]);
}

TEST(GptGenerate, TextComesAsItIsMade) {
    // The first line is answered while stdin is still open.
    const ProcessResult result = run_shell(
        "mkfifo_dir=$(mktemp -d); mkfifo $mkfifo_dir/in; "
        "(gpt-generate --model '" +
        kGptDemo +
        "' --threads 1 --input-format lines --temperature 0 --max-tokens 5 < $mkfifo_dir/in > "
        "$mkfifo_dir/out) "
        "& "
        "exec 3> $mkfifo_dir/in; echo 'The king' >&3; "
        "for i in $(seq 200); do [ -s $mkfifo_dir/out ] && grep -q . $mkfifo_dir/out && break; "
        "sleep 0.1; done; cat $mkfifo_dir/out; exec 3>&-; wait; rm -r $mkfifo_dir");
    EXPECT_GT(result.out.size(), 1u) << result.err;
}

TEST(GptGenerate, ConfigFile) {
    const TemporaryDirectory directory;
    write_text(directory.path() / "flags", "temperature = 0\nmax-tokens = 20\n");
    EXPECT_EQ(generate({"--config", (directory.path() / "flags").string()}, "Once upon a time").out,
              generate(kGreedy, "Once upon a time").out);
    write_text(directory.path() / "flags", "temprature = 0\n");
    EXPECT_EQ(generate({"--config", (directory.path() / "flags").string()}, "x").exit_code, 1);
}
