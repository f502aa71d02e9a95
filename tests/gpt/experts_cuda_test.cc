// Tiny models with mixtures of experts, and with latent attention, on a GPU against transformers in
// float32 (tests/golden/families.py). Skipped without a GPU.
#include <algorithm>
#include <cmath>

#include "core/json/json.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/decode_stream.h"
#include "gpt/engine/sequence.h"
#include "gpt/families/family.h"
#include "support/family_weights.h"
#include "support/golden.h"
#include "support/on_gpu.h"
#include "support/ops.h"
#include "support/process.h"

namespace hark::test {
namespace {

using namespace hark::gpt;
using nlohmann::json;

constexpr const char* kCases[] = {
    "mixtral",        "qwen3_moe",         "qwen3_moe, dense layers", "gpt_oss",
    "gpt_oss, mxfp4", "deepseek_v2, lite", "deepseek_v2, groups",     "deepseek_v3"};

class ExpertsOnGpu : public OnGpu {
  protected:
    static const json& expected_of(const std::string& name) {
        static const json read = golden("families.json");
        return read[name];
    }
    // stored: the type that the file's matrices count as, which decides what `auto` is.
    static Model model(Context& ctx, const std::string& name, const std::string& dtype,
                       Dtype stored = Dtype::f16) {
        const DecoderConfig config = parse_config(expected_of(name)["config"].dump(), name);
        FamilyWeights weights(false, name.ends_with("mxfp4"));
        const Precision precision = precision_of(dtype, Device::cuda, stored);
        const Family& family = family_of(config.family, name);
        if (!family.unpack) return read_model(weights, config, precision, ctx.arena.source());
        return read_model(*family.unpack(weights, config), config, precision, ctx.arena.source());
    }
    // Of a prompt in one piece, and of its last token after the others.
    static void expect_logits(const std::string& name, const std::string& dtype, double tolerance,
                              Dtype stored = Dtype::f16) {
        Context ctx = make_cuda_context(0);
        const Model of = model(ctx, name, dtype, stored);
        const std::vector<int32_t> ids = expected_of(name)["tokens"];
        const std::vector<float> expected = expected_of(name)["rows"]["47"];
        float largest = 0;
        for (const float x : expected) largest = std::max(largest, std::abs(x));
        Sequence whole(ctx, of), steps(ctx, of);
        const auto check = [&](std::span<const float> logits, const char* how) {
            SCOPED_TRACE(concat(name, ", ", dtype, ", ", how));
            expect_near(std::vector<float>(logits.begin(), logits.end()), expected,
                        tolerance * largest, 1);
        };
        check(whole.forward_to_host(ctx, ids), "prompt");
        for (size_t i = 0; i + 1 < ids.size(); ++i)
            steps.forward_to_host(ctx, std::span(ids).subspan(i, 1));
        check(steps.forward_to_host(ctx, std::span(ids).last(1)), "steps");
    }
};

TEST_F(ExpertsOnGpu, LogitsInF32) {
    for (const char* name : kCases) expect_logits(name, "f32", 1e-4);
}

// A rounded router may choose another expert: not in these models, whose routers are decided.
TEST_F(ExpertsOnGpu, LogitsInOtherTypes) {
    for (const char* name : kCases) {
        expect_logits(name, "auto", 0.02);
        expect_logits(name, "auto", 0.2, Dtype::bf16);
        expect_logits(name, "int8", 0.2);
        expect_logits(name, "fp8", 0.5);
    }
}

TEST_F(ExpertsOnGpu, GreedyTokensInF32) {
    for (const char* name : kCases) {
        SCOPED_TRACE(name);
        Context ctx = make_cuda_context(0);
        const Model of = model(ctx, name, "f32");
        const std::vector<int32_t> ids = expected_of(name)["tokens"],
                                   expected = expected_of(name)["greedy"];
        const std::vector<size_t> near = expected_of(name)["near"];
        const size_t wanted = near.empty() ? expected.size() : near.front();
        const auto stream = make_decode_stream(ctx, of, of.config.n_vocab, {.temperature = 0});
        stream->begin(std::span(ids).first(8), 0, std::ssize(expected));
        for (size_t i = 0; i < wanted; ++i)
            ASSERT_EQ(stream->next().token, expected[i]) << "step " << i;
    }
}

}  // namespace
}  // namespace hark::test
