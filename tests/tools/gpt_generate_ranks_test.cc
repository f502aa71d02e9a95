// gpt-generate as several processes under mpirun, on the CPU: their text is that of one, the first
// one speaks for all, and they end together.
#include "core/error.h"
#include "support/family_folder.h"
#include "tools/gpt_generate.h"

namespace hark::test {
namespace {

namespace fs = std::filesystem;

const std::string kPromptLines =
    "{\"prompt\":\"Once upon a time\"}\n{\"prompt\":\"A dog\",\"temperature\":1.5,\"n\":2}\n"
    "{\"prompt\":\"A dog and a cat\",\"temperature\":0}\n{\"prompt\":\"The old woman said\"}\n";

// Four heads of 32 channels, so that quantised matrices have whole blocks on four processes.
std::string tiny_config(const char* family) {
    json config = json::parse(kTinyConfig);
    config["model_type"] = family;
    config["hidden_size"] = 128;
    config["intermediate_size"] = 256;
    config["head_dim"] = 32;
    config["rms_norm_eps"] = 1e-6;
    config["hidden_act"] = "silu";
    if (std::string(family).starts_with("gemma")) {
        config.update({{"query_pre_attn_scalar", 32},
                       {"sliding_window", 16},
                       {"attn_logit_softcapping", 50.0},
                       {"final_logit_softcapping", 30.0},
                       {"hidden_activation", "gelu_pytorch_tanh"}});
        config.erase("hidden_act");
    }
    return config.dump();
}

ProcessResult generate_by(int ranks, const std::string& model, const std::string& more) {
    return run_shell((ranks > 1 ? mpirun(ranks, 120) : std::string()) +
                     concat("gpt-generate --threads 1 --device cpu --model '", model, "' ", more));
}

// The answers without their times, without log probabilities, whose last digits differ, and without
// what was in the cache: under mpirun stdin is no file, and prompts are answered one by one.
std::string answers_of(const ProcessResult& result) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    std::string answers;
    for (const std::string& line : lines_of(result.out)) {
        json answer = line.starts_with("{") ? untimed(line) : json(line);
        for (const char* key : {"logprobs", "cached_tokens"})
            if (answer.is_object()) answer.erase(key);
        answers += answer.dump() + "\n";
    }
    return answers;
}

void expect_same_texts(const std::string& model, const std::string& more,
                       const std::vector<int>& sizes) {
    SCOPED_TRACE(concat(model, " ", more));
    const std::string one = answers_of(generate_by(1, model, more));
    EXPECT_GT(one.size(), 20u);
    for (const int ranks : sizes) EXPECT_EQ(answers_of(generate_by(ranks, model, more)), one);
}

}  // namespace

TEST(GptGenerateRanks, TwoAndFourWriteTheTextOfOne) {
    const TemporaryDirectory folder;
    const fs::path prompts = folder.path() / "prompts.jsonl";
    write_text(prompts, kPromptLines);
    const std::string lines =
        concat("--input-format jsonl --max-tokens 16 --seed 7 < '", prompts.string(), "'");
    expect_same_texts(kGptDemo, lines, {2});
    expect_same_texts(kGptDemo, "-p 'Once upon a time' --max-tokens 8", {4});
    for (const char* family : {"llama", "qwen3", "gemma2"}) {
        const std::string model = (folder.path() / family).string();
        write_tiny_model(model, tiny_config(family), "qwen2");
        expect_same_texts(model, lines, {std::string(family) == "gemma2" ? 4 : 2});
    }
}

// What is computed at once, guessed or masked does not depend on the process.
TEST(GptGenerateRanks, AllWaysOfComputingAreShared) {
    const TemporaryDirectory folder;
    const fs::path prompts = folder.path() / "prompts.jsonl";
    write_text(prompts, kPromptLines);
    for (const std::string way :
         {"--max-sequences 2 --unordered --batch-invariant", "--prompt-lookup 4 --dtype f32",
          "--regex '([a-z]{1,4} ){3}[0-9]{2}'", "--draft-model demo --logprobs 2"})
        expect_same_texts(kGptDemo,
                          concat(way, " --input-format jsonl --seed 7 --max-tokens 60 < '",
                                 prompts.string(), "'"),
                          {2});
    // A pipe: each prompt is answered before the next one is read.
    expect_same_texts(kGptDemo, "--input-format lines --max-tokens 8 <<< 'Once upon a time'", {2});
}

// --gpus 2 in f32 has the text of one GPU and of the CPU; its stdin is a file, so that texts are
// computed together.
TEST(GptGenerateRanks, TwoGpusWriteTheTextOfOne) {
    if (!fs::exists("/dev/nvidia1")) GTEST_SKIP() << "needs two GPUs";
    const TemporaryDirectory folder;
    const fs::path prompts = folder.path() / "prompts.jsonl";
    write_text(prompts, kPromptLines);
    for (const std::string& more :
         {concat("--input-format jsonl --seed 7 --max-tokens 30 < '", prompts.string(), "'"),
          std::string("-p 'Once upon a time' --temperature 0 --max-tokens 60")}) {
        const auto text_of = [&](const char* device) {
            return answers_of(
                run_shell(concat("gpt-generate -m demo --dtype f32 ", device, " ", more)));
        };
        const std::string two = text_of("--gpus 2");
        EXPECT_EQ(two, text_of("--device cuda"));
        EXPECT_EQ(two, text_of("--device cpu"));
    }
    const ProcessResult piped =
        run_shell("gpt-generate -m demo --gpus 2 -p 'Once upon a time' --max-tokens 400 | true");
    EXPECT_EQ(piped.err, "");
}

TEST(GptGenerateRanks, BlocksAreSharedWhereTheyStayWhole) {
    const TemporaryDirectory folder;
    const std::string model = (folder.path() / "m").string(), blocks = model + ".gguf";
    write_tiny_model(model, tiny_config("qwen3"), "qwen2");
    const ProcessResult converted =
        run_shell(concat("hark-model convert '", model, "' '", blocks, "' --type q8_0"));
    ASSERT_EQ(converted.exit_code, 0) << converted.err;
    expect_same_texts(blocks, "-p 'Once upon a time' --temperature 0 --max-tokens 30", {2, 4});
    json config = json::parse(tiny_config("qwen3"));
    config["head_dim"] = 24;
    const std::string other = model + "24";
    write_tiny_model(other, config.dump(), "qwen2");
    const ProcessResult again =
        run_shell(concat("hark-model convert '", other, "' '", other, ".gguf' --type q8_0"));
    ASSERT_EQ(again.exit_code, 0) << again.err;
    const ProcessResult cut = generate_by(4, other + ".gguf", "-p x");
    EXPECT_EQ(cut.exit_code, 1);
    expect_contains(cut.err,
                    "expected slices of whole blocks of 32 values of q8_0, found 24 columns for "
                    "each of 4 processes");
}

TEST(GptGenerateRanks, WhatIsNotSharedIsRefused) {
    const TemporaryDirectory folder;
    const auto refused = [&](const std::string& more, int status, const std::string& part) {
        const ProcessResult result = generate_by(2, kGptDemo, more);
        EXPECT_EQ(result.exit_code, status) << result.err;
        EXPECT_EQ(result.out, "");
        expect_contains(result.err, part);
    };
    const std::string file = (folder.path() / "f").string();
    refused("-p x --prompt-cache '" + file + "'", 2, "--prompt-cache takes one process (got 2)");
    refused("--from-cache '" + file + "'", 2, "--from-cache takes one process (got 2)");
    refused("-p x --chat --conversation '" + file + "'", 2,
            "--conversation takes one process (got 2)");
    expect_fails(run_shell(mpirun(2, 120) + "gpt-generate -m demo -p x --gpus 2"), 1,
                 "a launcher has started 2; leave one of them out");
    expect_fails(generate({"-p", "x", "--gpus", "2", "--device", "cpu"}, ""), 2,
                 "--gpus needs --device cuda (got cpu)");
    expect_contains(generate_by(3, kGptDemo, "-p x").err,
                    "rank 0: " + kGptDemo +
                        "/model.safetensors: 3 processes cannot share the model: expected a "
                        "divisor of its attention heads, 4, got 3");
    const std::string one =
        concat("gpt-generate --model '", kGptDemo, "' --device cpu --threads 1 --seed ");
    const ProcessResult unlike =
        run_shell(mpirun(1, 120) + one + "1 -p x : -n 1 " + one + "2 -p x");
    EXPECT_NE(unlike.exit_code, 0);
    expect_contains(
        unlike.err,
        "gpt-generate: rank 1: the processes differ (rank 0 has --seed 1, all options ");
    expect_contains(unlike.err, "; this one has --seed 2, all options ");
    const ProcessResult prompts =
        run_shell(mpirun(1, 120) + one + "1 -p x : -n 1 " + one + "1 -p y");
    EXPECT_NE(prompts.exit_code, 0);
    expect_contains(prompts.err, "rank 1: the processes differ (rank 0 has all options ");
}

TEST(GptGenerateRanks, TheFirstSpeaksForAll) {
    const TemporaryDirectory folder;
    const fs::path prompts = folder.path() / "prompts.jsonl";
    write_text(prompts, "{\"prompt\":\"Once\"}\n{\"x\":1}\n{\"prompt\":\"A\"}\n");
    for (const std::string more : {"--max-sequences 1", "--max-sequences 3"}) {
        const ProcessResult result =
            generate_by(2, kGptDemo,
                        concat(more, " --stats --input-format jsonl --max-tokens 5 < '",
                               prompts.string(), "'"));
        EXPECT_NE(result.exit_code, 0);
        EXPECT_EQ(lines_of(result.out).size(), 3u) << result.out;
        const std::string failed = "line 2: expected a string named prompt or text, found neither";
        expect_contains(result.err, failed);
        EXPECT_EQ(result.err.find(failed), result.err.rfind(failed)) << result.err;
        EXPECT_EQ(result.err.find("tokens per second"), result.err.rfind("tokens per second"));
    }
}

// The text is endless; a rank is killed after its first bytes.
TEST(GptGenerateRanks, OneThatIsKilledEndsAllAndIsNamed) {
    const TemporaryDirectory folder;
    const std::string out = (folder.path() / "out").string();
    const ProcessResult killed = run_shell(concat(
        "yes 'Once upon a time' | ", mpirun(2, 120), "gpt-generate --device cpu --threads 1 -m '",
        kGptDemo, "' --input-format lines --stop '", out, "' > '", out,
        "' & starter=$!; until [ -s '", out, "' ] || ! kill -0 $starter; do sleep 0.05; done; ",
        "for p in /proc/[0-9]*; do tr '\\0' ' ' 2> /dev/null < $p/cmdline | ",
        "grep -q '^gpt-generate.*", out, " ' && grep -zqx OMPI_COMM_WORLD_RANK=1 $p/environ && ",
        "kill -KILL ${p#/proc/}; done; wait $starter"));
    EXPECT_NE(killed.exit_code, 0);
    EXPECT_NE(killed.exit_code, 124) << "the others have not ended";
    expect_contains(killed.err, "process rank 1");
    expect_contains(killed.err, "signal 9");
}

}  // namespace hark::test
