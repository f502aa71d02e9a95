// A prompt's keys and values in a file: what is read continues as what was written.
#include "gpt/engine/prompt_cache.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "core/files/files.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/decode_stream.h"
#include "gpt/family_models.h"
#include "gpt/sampling/sampler.h"
#include "support/error_of.h"
#include "support/expect.h"
#include "support/family_weights.h"
#include "support/ops.h"
#include "support/process.h"

namespace hark::gpt {
namespace {

using test::expect_contains;

Model cached_model(const DecoderConfig& config, Dtype cache, Context& ctx) {
    test::FamilyWeights weights(config.family.starts_with("gemma"));
    Precision precision = precision_of("f32");
    precision.cache = cache;
    return read_model(weights, config, precision, ctx.arena.source());
}

std::vector<int32_t> some_ids(int64_t n) {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < n; ++i) ids.push_back((7 + 13 * i) % 50);
    return ids;
}

// The sequence with these tokens, as a file.
std::filesystem::path written(Context& ctx, Sequence& sequence, std::span<const int32_t> tokens,
                              const std::filesystem::path& path) {
    const std::span<const float> logits = sequence.forward_to_host(ctx, tokens);
    AtomicFile file(path);
    ByteWriter out(file.fd(), file.name());
    write_prompt_cache(ctx, sequence, logits, out);
    file.commit();
    return path;
}

constexpr auto kFamilies = {"llama",  "mistral, window", "qwen3",
                            "gemma3", "phi3, longrope",  "deepseek_v2, lite"};

class PromptCaches : public testing::TestWithParam<test::DeviceCase> {};

// A cache with all keys, with windows, of latent rows; with longrope; in every type.
TEST_P(PromptCaches, GoOnToTheBit) {
    test::TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const test::TemporaryDirectory dir;
    for (const char* name : kFamilies)
        for (const Dtype type : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::q8_0}) {
            SCOPED_TRACE(concat(name, " in ", name_of(type)));
            const DecoderConfig config = parse_config(family_config(name).dump(), name);
            if (type == Dtype::q8_0 && config.head_dim % 32 != 0) continue;
            const Model model = cached_model(config, type, device.ctx());
            Sequence first(device.ctx(), model, {.prefill_rows = 16}), second(device.ctx(), model);
            const PromptCache read =
                read_prompt_cache(device.ctx(), second,
                                  written(device.ctx(), first, some_ids(45), dir.path() / "cache"));
            EXPECT_EQ(read.tokens, some_ids(45));
            EXPECT_EQ(second.tokens(), some_ids(45));
            for (const int32_t next : {3, 4, 5}) {
                const auto expected = first.forward_to_host(device.ctx(), {&next, 1});
                const auto found = second.forward_to_host(device.ctx(), {&next, 1});
                EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin()));
            }
            // Another prompt takes what it has in common, if all keys are there.
            std::vector<int32_t> other = some_ids(30);
            other.push_back(1), other.push_back(2);
            read_prompt_cache(device.ctx(), second, dir.path() / "cache");
            const bool all = std::all_of(config.layers.begin(), config.layers.end(),
                                         [](const LayerConfig& of) { return of.window == 0; });
            const int64_t kept = second.keep_beginning_of(other);
            if (all && !config.has_longrope()) {
                EXPECT_EQ(kept, 30);
            }
            const auto rest = std::span(other).subspan(static_cast<size_t>(kept));
            const auto found = second.forward_to_host(device.ctx(), rest);
            if (type != Dtype::f32) continue;  // keys round otherwise in another pass
            Sequence alone(device.ctx(), model);
            const auto expected = alone.forward_to_host(device.ctx(), other);
            test::expect_near(std::vector(found.begin(), found.end()),
                              std::vector(expected.begin(), expected.end()), 1e-5);
        }
}

// An answer in two processes has the tokens and log probabilities of one, greedy and drawn.
TEST_P(PromptCaches, GiveTheAnswersOfOneProcess) {
    test::TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    Context& ctx = device.ctx();
    const test::TemporaryDirectory dir;
    const std::vector<int32_t> prompt = some_ids(45);
    for (const char* name : kFamilies)
        for (const Dtype type : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::q8_0}) {
            SCOPED_TRACE(concat(name, " in ", name_of(type)));
            const DecoderConfig config = parse_config(family_config(name).dump(), name);
            if (type == Dtype::q8_0 && config.head_dim % 32 != 0) continue;
            const Model model = cached_model(config, type, ctx);
            const SamplerOptions sampler{.temperature = type == Dtype::f32 ? 1.0 : 0.0};
            constexpr int64_t kTokens = 20;
            const auto answer = [&](DecodeStream& stream) {
                std::vector<std::pair<int32_t, double>> tokens;
                for (int64_t i = 0; i < kTokens; ++i) {
                    const SampledToken next = stream.next();
                    tokens.emplace_back(next.token, next.logprob);
                }
                return tokens;
            };
            const auto alone = make_decode_stream(ctx, model, config.n_vocab, sampler);
            alone->begin(prompt, 3, kTokens);
            const auto expected = answer(*alone);
            Sequence first(ctx, model);
            const auto path = written(ctx, first, prompt, dir.path() / "cache");
            const auto second = make_decode_stream(ctx, model, config.n_vocab, sampler);
            const PromptCache read = read_prompt_cache(ctx, second->sequence(), path);
            second->go_on(read.logits, 3, kTokens);
            EXPECT_EQ(answer(*second), expected);
            // A further answer to the prompt: what both have in the cache is the same.
            alone->begin(prompt, 4, kTokens, true);
            second->begin(prompt, 4, kTokens, true);
            EXPECT_EQ(answer(*second), answer(*alone));
        }
}

INSTANTIATE_TEST_SUITE_P(Devices, PromptCaches, testing::Values(test::kCpuCase, test::kCudaF32Case),
                         test::name_of_case);

// What is read into a sequence of `model` from these bytes throws this.
std::string refusal(const Model& model, const std::string& bytes, int64_t context = 0) {
    const test::TemporaryDirectory dir;
    write_file(dir.path() / "cache", bytes);
    Context ctx = make_cpu_context(1);
    Sequence sequence(ctx, model, {.context = context});
    return test::error_of([&] { read_prompt_cache(ctx, sequence, dir.path() / "cache"); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return at == text.npos ? text : text.replace(at, from.size(), to);
}

TEST(PromptCache, WhatDoesNotFitIsRefused) {
    Context ctx = make_cpu_context(1);
    const test::TemporaryDirectory dir;
    const DecoderConfig config = parse_config(family_config("llama").dump(), "llama");
    const Model model = cached_model(config, Dtype::f32, ctx);
    Sequence sequence(ctx, model);
    const std::string good =
        test::read_text(written(ctx, sequence, some_ids(9), dir.path() / "cache"));
    EXPECT_EQ(refusal(model, good), "none");
    expect_contains(refusal(cached_model(config, Dtype::f16, ctx), good),
                    "has keys and values in f32, this run in f16");
    const DecoderConfig other = parse_config(family_config("qwen3").dump(), "qwen3");
    expect_contains(refusal(cached_model(other, Dtype::f32, ctx), good), "is of another model");
    DecoderConfig turned = config;
    turned.ropes[0].frequencies[1] *= 2;
    expect_contains(refusal(cached_model(turned, Dtype::f32, ctx), good), "is of another model");
    expect_contains(refusal(model, good, 8), "has 9 tokens, the context 8");
    expect_contains(refusal(model, good.substr(0, good.size() - 1)), "cache: ");
    expect_contains(refusal(model, good.substr(0, 100)), "cache: ");
    expect_contains(refusal(model, replaced(good, "kv_cache", "kv_cachf")), "kv_cachf");
    expect_contains(refusal(model, replaced(good, "keys.0", "keyz.0")),
                    "expected `keys.0` as tensor 3, found `keyz.0`");
    expect_contains(refusal(model, replaced(good, "[9]", "[3]")), "cache: ");
    expect_contains(refusal(model, ""), "found nothing");
    expect_contains(refusal(model, good + "x"), "found more after it");
    expect_contains(refusal(model, replaced(good, R"("false")", R"("true" )")),
                    "was computed with --batch-invariant; give both runs the same");
    const size_t rows = static_cast<size_t>(config.n_layer * 2 * sequence.cache().rows_bytes(9));
    const size_t tokens = good.size() - rows - static_cast<size_t>(config.n_vocab) * 4 - 36;
    expect_contains(
        refusal(model, good.substr(0, tokens) + "\xff\xff\xff\x7f" + good.substr(tokens + 4)),
        "expected tokens below");
}

// A layer with a window has its newest keys; one without has all.
TEST(PromptCache, OfAllKeysIsWhole) {
    Context ctx = make_cpu_context(1);
    const test::TemporaryDirectory dir;
    const Model window = cached_model(
        parse_config(family_config("mistral, window").dump(), "window"), Dtype::f32, ctx);
    Sequence sequence(ctx, window, {.prefill_rows = 16});
    std::string bytes = test::read_text(written(ctx, sequence, some_ids(90), dir.path() / "cache"));
    EXPECT_EQ(refusal(window, bytes), "none");
    DecoderConfig config = window.config;
    for (LayerConfig& layer : config.layers) layer.window = 0;
    const Model all = cached_model(config, Dtype::f32, ctx);
    bytes = replaced(bytes, fingerprint_of(ctx, window), fingerprint_of(ctx, all));
    expect_contains(refusal(all, bytes), "lacks keys that the next token reads");
}

}  // namespace
}  // namespace hark::gpt
