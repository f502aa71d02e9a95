// hark-advise's predictions next to what has been measured, and never above a machine's limits.
#include "operations/advice/advice.h"

#include <cmath>

#include "gpt/families/published_shapes.h"
#include "operations/advice/prices.h"
#include "operations/advice/proof.h"
#include "operations/advice_rows.h"
#include "operations/doctor/finding.h"
#include "support/error_of.h"
#include "support/expect.h"

namespace hark::advice {
namespace {

constexpr double kTolerance = 0.25;

Machine gpu(const std::string& name) { return expected_machine(*find_named_gpu(name)); }

// Two cores of the Xeon of docs/performance.md [8]. Its L3 holds a small decoder; what is larger is
// read beyond it.
Machine xeon(double gb_per_s) {
    Machine machine;
    machine.name = "Xeon";
    machine.f32_tflops = 0.441;
    machine.half_tflops = 1.582;
    machine.int8_tflops = 4.052;
    machine.gb_per_s = gb_per_s;
    machine.memory_bytes = 16e9;
    return machine;
}
double stage_ms(const Prediction& prediction, const std::string& name) {
    for (const Stage& stage : prediction.stages)
        if (stage.name == name) return stage.ms;
    ADD_FAILURE() << "no stage " << name;
    return 0;
}

// HARK_SHOW_PREDICTIONS prints what docs/advise.md has.
void expect_near(double predicted, double measured, const std::string& what,
                 const std::string& source) {
    EXPECT_GT(predicted, measured * (1 - kTolerance)) << what << ", measured " << measured;
    EXPECT_LT(predicted, measured * (1 + kTolerance)) << what << ", measured " << measured;
    if (std::getenv("HARK_SHOW_PREDICTIONS"))
        std::printf("%s\t%s\t%s\t%+.0f%%\t%s\n", what.c_str(), doctor::figure(measured).c_str(),
                    doctor::figure(predicted).c_str(), 100 * (predicted / measured - 1),
                    source.c_str());
}

double figure_of(const Prediction& one, Figure figure, const Load& load) {
    switch (figure) {
        case Figure::encoder:
            return stage_ms(one, "encoder");
        case Figure::step:
            return stage_ms(one, "step");
        case Figure::window:
            return one.item_ms;
        case Figure::speed:
            return one.speed;
        case Figure::prompt_speed:
            return 1000 * static_cast<double>(load.prompt_tokens) / stage_ms(one, "prompt");
        case Figure::step_speed:
            return 1000 * static_cast<double>(one.batch) / stage_ms(one, "step");
    }
    return 0;
}

TEST(Advice, WhisperOnAGpuIsAsMeasured) {
    for (const WhisperRow& row : kWhisperRows) {
        const Shape shape(row.model, whisper::official_config(row.model));
        const Load load;
        const Prediction one =
            predict(gpu(row.gpu), shape, shape.weights(row.type, true), row.windows, load);
        expect_near(figure_of(one, row.figure, load), row.measured,
                    concat(row.gpu, "\t", row.model, "\t", row.type, "\t", row.windows, "\t-\t",
                           name_of(row.figure)),
                    row.source);
    }
}

Shape published(const std::string& name) {
    return Shape(name, gpt::parse_config(gpt::find_shape(name)->config, name));
}

TEST(Advice, LanguageModelsOnAGpuAreAsMeasured) {
    for (const GptRow& row : kGptRows) {
        const Load load{.prompt_tokens = row.prompt, .max_tokens = 128};
        const Shape shape = published(row.shape);
        const Prediction one =
            predict(gpu(row.gpu), shape, shape.weights(row.type, true), row.texts, load);
        expect_near(figure_of(one, row.figure, load), row.measured,
                    concat(row.gpu, "\t", row.shape, "\t", row.type, "\t", row.texts, "\t",
                           row.prompt, "\t", name_of(row.figure)),
                    row.source);
    }
}

TEST(Advice, WhisperOnACpuIsAsMeasured) {
    const Load load{.tokens_per_window = 100};
    for (const CpuRow& row : kCpuRows) {
        const Shape shape(row.model, whisper::official_config(row.model));
        const Prediction one =
            predict(xeon(row.gb_per_s), shape, shape.weights(row.type, false), row.windows, load);
        expect_near(figure_of(one, row.figure, load), row.measured,
                    concat("Xeon\t", row.model, "\t", row.type, "\t", row.windows, "\t-\t",
                           name_of(row.figure)),
                    "[8]");
    }
}

TEST(Advice, LanguageModelsOnACpuReachTheMeasuredPartOfTheBandwidth) {
    Machine machine = xeon(24);
    machine.f32_tflops = 0.15;
    const Load load{.prompt_tokens = 256, .max_tokens = 48};
    for (const FractionRow& row : kFractions) {
        const Shape shape = published(row.shape);
        const Weights weights = shape.weights(row.type, false);
        const gpt::DecoderConfig& config = shape.gpt();
        const double keys =
            280 * weights.cache_bytes * static_cast<double>(config.n_layer * config.cache_width());
        const double least =
            (weights.of(Group::layers) + weights.of(Group::head) + keys) / machine.gb_per_s * 1e-6;
        const Prediction one = predict(machine, shape, weights, 1, load);
        expect_near(least / stage_ms(one, "step"), row.fraction,
                    concat("EPYC\t", row.shape, "\t", row.type, "\t1\t256\tpart of the bandwidth"),
                    "[27]");
    }
}

// All that a prediction computes and reads, over its time.
void expect_below_roof(const Machine& machine, const Weights& weights, const std::string& what,
                       const Prediction& one) {
    const double n = static_cast<double>(one.batch);
    const double step_flops = 2 * n * (weights.count(Group::layers) + weights.count(Group::head));
    const double step_bytes = weights.of(Group::layers) + weights.of(Group::head);
    const double step = stage_ms(one, "step");
    EXPECT_LE(step_bytes / step * 1e-6, machine.gb_per_s * 1.0001) << what;
    const double peak = machine.tflops(machine.is_gpu ? weights.arithmetic : Arithmetic::f32);
    EXPECT_LE(step_flops / step * 1e-9, peak * 1.0001) << what;
    for (const Stage& stage : one.stages) EXPECT_GT(stage.ms, 0) << what;
}

TEST(Advice, IsNeverAboveTheRoof) {
    for (const Factor& factor : factors()) {
        EXPECT_TRUE(factor.bytes > 0 && factor.bytes <= 1) << name_of(factor.part);
        EXPECT_TRUE(factor.arithmetic > 0 && factor.arithmetic <= 1) << name_of(factor.part);
        EXPECT_GT(std::string(factor.source).size(), 2u) << name_of(factor.part);
    }
    std::vector<Machine> machines = {xeon(kInL3)};
    for (const KnownGpu& known : known_gpus()) {
        machines.push_back(expected_machine(known));
        EXPECT_LT(machines.back().half_tflops, known.bf16_tflops) << known.name;
        EXPECT_LT(machines.back().gb_per_s, known.memory_gb_per_s) << known.name;
    }
    std::vector<Shape> shapes = {Shape("tiny", whisper::official_config("tiny")),
                                 Shape("large-v3", whisper::official_config("large-v3")),
                                 published("qwen2.5-0.5b"), published("qwen3-30b-a3b")};
    const Load load{.max_tokens = 128};
    for (const Shape& shape : shapes)
        for (const bool is_gpu : {false, true})
            for (const std::string& type : shape.types(is_gpu, is_gpu)) {
                const Weights weights = shape.weights(type, is_gpu);
                for (const Machine& machine : machines) {
                    if (machine.is_gpu != is_gpu || (type == "fp8" && !machine.is_hopper)) continue;
                    for (int64_t batch = 1; batch <= 1024; batch *= 4)
                        expect_below_roof(
                            machine, weights,
                            concat(shape.name(), " ", type, " ", batch, " on ", machine.name),
                            predict(machine, shape, weights, batch, load));
                }
            }
}

TEST(Advice, LargerBatchesAreNeverMuchSlower) {
    for (const char* name : {"tiny", "large-v3", "turbo"}) {
        const Shape shape(name, whisper::official_config(name));
        const Weights weights = shape.weights("auto", true);
        double before = 0;
        for (int64_t batch = 1; batch <= 1024; batch *= 2) {
            const double speed = predict(gpu("h200"), shape, weights, batch, {}).speed;
            EXPECT_GT(speed, 0.97 * before) << name << " " << batch;
            before = speed;
        }
    }
}

TEST(Advice, SizesAreThoseOfTheModels) {
    // Parameters that are published: 1,550 M (large), 809 M (turbo), 124 M, 8.03 G.
    const auto parameters = [](const Shape& shape) {
        double sum = 0;
        for (const double group : shape.weights("auto", true).parameters) sum += group;
        return sum;
    };
    EXPECT_NEAR(parameters(Shape("large-v3", whisper::official_config("large-v3"))), 1.543e9,
                0.01e9);
    EXPECT_NEAR(parameters(Shape("turbo", whisper::official_config("turbo"))), 809e6, 1e6);
    EXPECT_NEAR(parameters(published("gpt2-124m")), 124.4e6, 0.1e6);
    EXPECT_NEAR(parameters(published("llama-3.1-8b")), 8.03e9, 0.01e9);
    // Bits of a weight: 8.5 with a scale of 16 bits for 32 values.
    const Weights q8 = published("llama-3.1-8b").weights("q8_0", true);
    EXPECT_NEAR(8 * q8.of(Group::layers) / q8.count(Group::layers), 8.5, 1e-6);
    // docs/performance.md [13]: megabytes of tiny's weights in memory.
    const Shape tiny("tiny", whisper::official_config("tiny"));
    for (const auto& [type, megabytes] : std::vector<std::pair<std::string, double>>{
             {"auto", 77.1}, {"int8", 40.5}, {"q8_0", 43.0}, {"q4_0", 24.7}})
        EXPECT_NEAR(tiny.weights(type, false).total() * 1e-6, megabytes, 0.03 * megabytes) << type;
    EXPECT_EQ(published("gpt-oss-20b").stored(), "mxfp4");
    EXPECT_EQ(published("gpt-oss-20b").types(true), std::vector<std::string>{"auto"});
    const auto has_fp8 = [](const char* name) {
        const std::vector<std::string> types =
            published("llama-3.1-8b").types(true, gpu(name).is_hopper);
        return std::find(types.begin(), types.end(), "fp8") != types.end();
    };
    EXPECT_TRUE(has_fp8("h200") && has_fp8("gh200"));
    EXPECT_FALSE(has_fp8("a100-80") || has_fp8("b200"));
}

TEST(Advice, WhatFits) {
    const Shape large("large-v3", whisper::official_config("large-v3"));
    const Memory memory = memory_of(gpu("h200"), large, large.weights("auto", true), {});
    EXPECT_NEAR(memory.weights, 3.09e9, 0.02e9);
    // Cross-attention's keys and values, and those of five rows of 448 tokens.
    EXPECT_EQ(memory.item, 4.0 * 32 * 1280 * (1500 + 5 * 448));
    EXPECT_EQ(memory.many_items, 2.0 * 1280 * (1500 + 2 * 5 * 32 * 448));
    EXPECT_GT(memory.most, 256);
    EXPECT_EQ(default_batch(gpu("h200"), large, memory), 32);
    const Shape llama = published("llama-3.1-8b");
    const auto most = [&](const char* type) {
        return memory_of(gpu("a10"), llama, llama.weights(type, true), {.max_tokens = 128}).most;
    };
    EXPECT_EQ(most("f32"), 0);
    EXPECT_GT(most("auto"), 64);
    const Analysis none = analyse(gpu("a10"), published("qwen3-30b-a3b"), {.max_tokens = 128});
    EXPECT_EQ(none.standard.batch, 0);
    ASSERT_FALSE(none.advice.empty());
    EXPECT_FALSE(none.advice[0].gain.has_value());
    test::expect_contains(none.advice[0].text, "q4_k_m: auto does not fit");
}

TEST(Advice, HasThreeSentencesAtMostWithTheirGain) {
    for (const KnownGpu& known : known_gpus()) {
        const Shape shape("large-v3", whisper::official_config("large-v3"));
        const Analysis analysis = analyse(expected_machine(known), shape, {});
        EXPECT_LE(analysis.advice.size(), 3u);
        double before = HUGE_VAL;
        for (const Advice& one : analysis.advice) {
            ASSERT_TRUE(one.gain.has_value()) << one.text;
            EXPECT_TRUE(*one.gain >= 1.05 && *one.gain <= before) << one.text;
            before = *one.gain;
        }
        EXPECT_GE(analysis.of(analysis.best).speed, 0.9 * analysis.of(analysis.standard).speed);
    }
}

TEST(Proof, OfFewerInputsThanTheAdvisedBatchSaysSo) {
    Proof proof{.standard = {.choice = {"auto", 256}, .seconds = 2, .speed = 50},
                .advised = {.choice = {"fp8", 512}, .seconds = 1, .speed = 100},
                .inputs = 3,
                .amount = 100};
    EXPECT_EQ(proof_text(proof).find("fill"), std::string::npos);
    EXPECT_EQ(proof_json(proof)["fills_batch"], true);
    proof.unfilled_batch = 512;
    test::expect_contains(
        proof_text(proof),
        "3 prompts, 100 tokens, without loading\nthey do not fill a batch of 512, so "
        "its gain is not shown; give more by --input\ndefault  --max-sequences 256: ");
    EXPECT_EQ(proof_json(proof)["fills_batch"], false);
}

TEST(Prices, OfAFile) {
    const Prices prices = parse_prices(
        "# ours\nh100 2.50\nTYPE  $/HOUR  GPUS\ngpu_8x_a100_80gb_sxm4 22.32 8 A100 -\n"
        "gpu_1x_a10 1.29 1 A10\ncpu_4x_general 0.20 0\ngpu_1x_a6000 1.09 1\nh100 2.40 # night\n",
        "prices.txt");
    EXPECT_EQ(prices.of("h100"), 2.40);
    EXPECT_EQ(prices.of("a100-80"), 2.79);
    EXPECT_EQ(prices.of("a10"), 1.29);
    EXPECT_EQ(prices.of("b200"), std::nullopt);
    EXPECT_EQ(prices.dollars.size(), 3u);
    const auto message = [](const std::string& text) {
        return test::error_of([&] { parse_prices(text, "prices.txt"); });
    };
    test::expect_contains(message("h100 cheap\n"), "prices.txt:1: expected a GPU and its dollars");
    test::expect_contains(message("\nh10 3\n"), "prices.txt:2: unknown GPU 'h10'; did you mean");
    test::expect_contains(message("# nothing\n"), "prices.txt: no prices");
    for (const auto& [gpu, dollars] : stored_prices().dollars) {
        EXPECT_NE(find_named_gpu(gpu), nullptr) << gpu;
        EXPECT_TRUE(dollars > 0.3 && dollars < 20) << gpu;
    }
}

}  // namespace
}  // namespace hark::advice
