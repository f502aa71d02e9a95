// hark-advise as a shell runs it: tables, JSON, prices, proofs, wrong command lines.
#include "core/json/json.h"
#include "support/expect.h"
#include "tools/hark_model.h"

namespace hark::test {
namespace {

class Advise : public HarkModel {
  protected:
    ProcessResult advise(const std::string& arguments) { return shell("hark-advise " + arguments); }
    nlohmann::json json(const std::string& arguments) {
        const ProcessResult result = advise(arguments + " --format json");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return nlohmann::json::parse(result.out);
    }
};

const std::string kWhisper = "--model '" + kDemo.string() + "'";
const std::string kGpt = "--model '" + (source_dir() / "models/gpt-demo").string() + "'";

TEST_F(Advise, OfAGpuThatIsNotHere) {
    const ProcessResult result = advise("-m large-v3 --gpu h100 --audio-hours 500");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    for (const char* part :
         {"large-v3 (auto: f16) on h100, expected: 692 TFLOP/s, 2848 GB/s, 80.0 GB; 100 tokens per",
          "memory  weights", "batch  x real time  encoder ms  step ms  500 h", "$ at 4.29/h",
          "\n32*    ", "bytes of cross-attention", "x real time  auto", "q8_0",
          "\nstage    ms of batch 32  bound by\nencoder  5.18            arithmetic of ",
          "\nstep     4.96            bytes of cross-attention ",
          "advice  --windows independent, for one recording alone: 32 windows at once; its words ",
          "may differ: 5.99 times as fast\n"})
        expect_contains(result.out, part);
    for (const std::string tool : {"hark advise", "HARK_GPU=h100 hark-advise"})
        EXPECT_EQ(shell(tool + " -m large-v3 --gpu h100 --audio-hours 500").out, result.out);
}

TEST_F(Advise, AsJson) {
    const auto report = json("-m llama-3.1-8b --gpu h200 --prompt-tokens 512 --max-tokens 100");
    EXPECT_EQ(report["model"], "llama-3.1-8b");
    EXPECT_EQ(report["kind"], "gpt");
    EXPECT_EQ(report["load"]["prompt_tokens"], 512);
    EXPECT_EQ(report["load"]["max_tokens"], 100);
    EXPECT_EQ(report["machine"]["name"], "h200");
    EXPECT_EQ(report["machine"]["measured"], false);
    EXPECT_TRUE(report["machine"]["dollars_per_hour"].is_null());
    EXPECT_EQ(report["machine"]["watts"], 700);
    ASSERT_EQ(report["memory"].size(), 6u);  // fp8 too
    for (const auto& memory : report["memory"])
        for (const char* key : {"weights", "fixed", "item", "many_items", "most"})
            EXPECT_TRUE(memory[key].is_number()) << memory.dump();
    EXPECT_EQ(report["default_batch"], 256);
    for (const auto& one : report["predictions"]) {
        double sum = 0;
        for (const auto& term : one["terms"]) sum += term["ms"].get<double>();
        EXPECT_NEAR(sum, one["item_ms"].get<double>(), 1e-6 * sum);
        EXPECT_NEAR(one["speed"].get<double>() * one["seconds"].get<double>(), 1e6, 1);
        EXPECT_NEAR(one["joules"].get<double>(), 700 * one["seconds"].get<double>(), 1e-3);
        EXPECT_TRUE(one["dollars"].is_null());
        ASSERT_EQ(one["stages"].size(), 2u);
        EXPECT_EQ(one["stages"][0]["name"], "prompt");
        EXPECT_EQ(one["stages"][1]["name"], "step");
    }
    EXPECT_GT(report["advice"].size(), 0u);
    EXPECT_FALSE(report.contains("compare"));
    EXPECT_FALSE(report.contains("proof"));
}

TEST_F(Advise, ComparesGpusByPrice) {
    const auto stored = json("-m turbo --gpu a10 --compare");
    EXPECT_EQ(stored["prices"], "Lambda, 2026-09-20");
    ASSERT_GT(stored["compare"].size(), 15u);
    double before = 0;
    bool priced = true;
    for (const auto& offer : stored["compare"]) {
        const auto& dollars = offer["prediction"]["dollars"];
        if (dollars.is_null()) priced = false;
        if (dollars.is_null()) continue;
        EXPECT_TRUE(priced) << "a GPU without a price comes before " << offer["machine"]["name"];
        EXPECT_GE(dollars.get<double>(), before);
        before = dollars.get<double>();
    }
    EXPECT_GT(before, 0);
    const fs::path file = home_.path() / "prices";
    write_text(file, "h200 1.00 # ours\nb200 100\n");
    const std::string prices = " --compare --prices '" + file.string() + "'";
    const auto own = json("-m turbo --gpu h200" + prices);
    EXPECT_EQ(own["compare"][0]["machine"]["name"], "h200");
    EXPECT_EQ(own["compare"][1]["machine"]["name"], "b200");
    EXPECT_TRUE(own["compare"][2]["machine"]["dollars_per_hour"].is_null());
    EXPECT_EQ(own["machine"]["dollars_per_hour"], 1);
    const ProcessResult text = advise("-m turbo --gpu h200" + prices);
    expect_contains(text.out, "every known GPU, prices of " + file.string() + "\ngpu ");
    write_text(file, "h2000 1\n");
    expect_fails_without_output(advise("-m turbo --gpu h200" + prices), 1,
                                "prices:1: unknown GPU 'h2000'; did you mean 'h200'?");
}

TEST_F(Advise, OfAConfigAlone) {
    const fs::path config = home_.path() / "config.json";
    fs::copy(kDemo / "config.json", config);
    const auto report = json("--model '" + config.string() + "' --gpu l4");
    EXPECT_EQ(report["kind"], "whisper");
    // It has its folder's name.
    const ProcessResult here = run_shell("cd '" + home_.path().string() +
                                         "' && hark-advise --model ./config.json --gpu l4");
    EXPECT_EQ(here.out.rfind(home_.path().filename().string() + " (", 0), 0u) << here.out;
    const fs::path named = home_.path() / "small.en.json";
    fs::copy(config, named);
    EXPECT_EQ(json("--model '" + named.string() + "' --gpu l4")["model"], "small.en");
    expect_fails_without_output(advise("-m '" + config.string() + "' --device cpu --run"), 1,
                                config.string());
}

TEST_F(Advise, MeasuresAndProves) {
    const auto whisper = json(kWhisper + " --device cpu --threads 1 --run --input '" +
                              (samples_dir() / "harbour.wav").string() + "'");
    EXPECT_EQ(whisper["machine"]["name"], "this CPU");
    EXPECT_EQ(whisper["machine"]["measured"], true);
    EXPECT_GT(whisper["machine"]["gb_per_s"], 0.1);
    EXPECT_EQ(whisper["proof"]["inputs"], 1);
    EXPECT_EQ(whisper["proof"]["default"]["type"], "auto");
    EXPECT_EQ(whisper["proof"]["default"]["batch"], whisper["default_batch"]);
    EXPECT_GT(whisper["proof"]["default"]["speed"], 0);
    // Which flags are advised depends on the processor.
    if (!whisper["proof"]["advised"].is_null()) {
        EXPECT_GT(whisper["proof"]["advised"]["speed"], 0);
        EXPECT_EQ(whisper["proof"]["words"], 9);
        EXPECT_LE(whisper["proof"]["changed_words"], 9);
    }
    const fs::path prompts = home_.path() / "prompts";
    write_text(prompts, "The old man\n\nOnce upon a time\n");
    const ProcessResult gpt = advise(
        kGpt + " --device cpu --threads 1 --max-tokens 5 --run --input '" + prompts.string() + "'");
    EXPECT_EQ(gpt.exit_code, 0) << gpt.err;
    expect_contains(gpt.out, "run on this machine: 2 prompts, 10.0 tokens, without loading\n");
    expect_contains(gpt.out, "\ndefault  --max-sequences 16: ");
    expect_contains(gpt.out, "\nadvised  ");
}

TEST_F(Advise, WrongUses) {
    expect_fails_without_output(advise(""), 2, "--model is required");
    expect_fails_without_output(advise("-m tiny --gpu ''"), 2, "--gpu");
    EXPECT_EQ(advise("-m tiny --gpu H100").out, advise("-m tiny --gpu h100").out);
    expect_fails_without_output(
        advise("-m tiny --gpu h1000"), 2,
        "unknown GPU 'h1000'; did you mean 'h100'?; known are a10, a100-40");
    expect_fails_without_output(advise("-m tiny --gpu h100 --device gpu"), 2, "--device");
    expect_fails_without_output(advise("-m tiny --gpu h100 --run"), 2, "leave out --gpu");
    expect_fails_without_output(advise("-m tiny --input a.wav"), 2, "--input: needs --run");
    expect_fails_without_output(advise("-m tiny --format xml"), 2, "--format");
    expect_fails_without_output(advise("-m no-such-model --gpu h100"), 1, "no-such-model");
    expect_fails_without_output(advise("-m gpt2 --gpu h100 --prompt-tokens 1000 --max-tokens 100"),
                                1, "gpt2: has 1024 positions");
    expect_fails_without_output(advise("-m tiny --gpu h100 --prices /nowhere/prices"), 1,
                                "/nowhere/prices");
    expect_fails_without_output(
        advise(kWhisper + " --device cpu --threads 1 --run --input /nowhere/a.wav"), 1,
        "/nowhere/a.wav");
    expect_fails_without_output(advise("tiny"), 2,
                                "takes no arguments (got tiny); give the model with --model");
    const std::string sound = (samples_dir() / "key.wav").string();
    expect_fails_without_output(
        advise(kGpt + " --device cpu --threads 1 --run --input '" + sound + "'"), 1,
        sound + ": this is no text");
}

}  // namespace
}  // namespace hark::test
