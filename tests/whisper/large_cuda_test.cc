// A random large-v3 on a GPU: a row's result does not depend on the number of other rows in the
// batch, nor on which they are. Skipped without a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/random.h"
#include "kernels/runtime/cuda_library.h"
#include "support/ops.h"
#include "whisper/transcribe/gpu_step.h"

namespace hark::test {
namespace {

using namespace hark::whisper;

constexpr int64_t kWindows = 64, kSteps = 157;  // 10,048 tokens
constexpr int64_t kWindowsAtOnce = 16;

LogitConstraints constraints_of(const Config& config) {
    LogitConstraints constraints;
    constraints.eot = static_cast<int32_t>(config.n_vocab) - 1;
    constraints.timestamps = false;
    constraints.timestamp_begin = static_cast<int32_t>(config.n_vocab);
    return constraints;
}

// The tokens and their log probabilities, by window; an array of bits of each.
using Decoded = std::vector<std::vector<std::pair<int32_t, uint32_t>>>;

void encode(Context& ctx, const Model& model, Caches& caches, std::span<const int64_t> windows) {
    const int64_t n_mels = model.config.n_mels;
    for (size_t i = 0; i < windows.size(); i += kWindowsAtOnce) {
        std::vector<int64_t> slots;
        std::vector<float> mel;
        for (size_t k = i; k < std::min(i + kWindowsAtOnce, windows.size()); ++k) {
            slots.push_back(static_cast<int64_t>(k));
            const std::vector<float> one =
                random_values(kWindowFrames * n_mels, static_cast<uint32_t>(100 + windows[k]));
            mel.insert(mel.end(), one.begin(), one.end());
        }
        encode_windows(ctx, model, caches, slots,
                       Tensor(mel.data(), Dtype::f32, {std::ssize(slots), kWindowFrames, n_mels}));
    }
}

// Decodes these windows at once, each from its own prompt of 4 tokens.
void decode(Context& ctx, const Model& model, CrossKvMode mode, std::span<const int64_t> windows,
            Decoded& decoded) {
    const int64_t n = std::ssize(windows);
    const LogitConstraints constraints = constraints_of(model.config);
    const int32_t n_vocab = static_cast<int32_t>(model.config.n_vocab);
    Caches caches(model, n + 1, n, mode, ctx.arena.source());
    GpuStep step(ctx, model, caches, constraints, n);
    encode(ctx, model, caches, windows);
    std::vector<std::vector<int32_t>> tokens;
    for (const int64_t window : windows) {
        tokens.push_back({});
        for (int32_t i = 0; i < 4; ++i)
            tokens.back().push_back(static_cast<int32_t>(1000 + 17 * window + i));
    }
    for (int64_t i = 0; i < kSteps; ++i) {
        Pass pass;
        std::vector<SampleRequest> requests;
        for (int64_t k = 0; k < n; ++k) {
            const std::vector<int32_t>& own = tokens[static_cast<size_t>(k)];
            pass.add(own, i == 0 ? 0 : std::ssize(own) - 1, k, k, model.config.n_audio_ctx);
            pass.want(pass.rows() - 1);
            requests.push_back(sample_request(constraints, std::span(own).subspan(4), n_vocab));
        }
        const std::vector<Candidate> best = step(pass, requests, 1);
        for (size_t k = 0; k < best.size(); ++k) {
            tokens[k].push_back(best[k].token);
            decoded[static_cast<size_t>(windows[k])].push_back(
                {best[k].token, std::bit_cast<uint32_t>(best[k].logprob)});
        }
    }
}

// All windows in batches of `batch`, in an order that depends on it.
Decoded decoded_in_batches(Context& ctx, const Model& model, CrossKvMode mode, int64_t batch) {
    std::vector<int64_t> order(kWindows);
    std::iota(order.begin(), order.end(), 0);
    Random random(static_cast<uint64_t>(batch));
    for (size_t i = order.size() - 1; batch > 1 && i > 0; --i)
        std::swap(order[i], order[random.next() % (i + 1)]);
    Decoded decoded(kWindows);
    for (int64_t i = 0; i < kWindows; i += batch)
        decode(ctx, model, mode,
               std::span(order).subspan(static_cast<size_t>(i),
                                        static_cast<size_t>(std::min(batch, kWindows - i))),
               decoded);
    return decoded;
}

TEST(LargeOnGpu, TenThousandTokensHaveTheSameBitsInEveryBatch) {
    const TestDevice device(kCudaF16Case);
    if (!device) GTEST_SKIP() << device.why_not();
    Context ctx = make_cuda_context(0);
    const Model model = random_model(official_config("large-v3"), precision_of("f16", Device::cuda),
                                     1, ctx.arena.source());
    for (const CrossKvMode mode : {CrossKvMode::recompute, CrossKvMode::store}) {
        SCOPED_TRACE(mode == CrossKvMode::recompute ? "recompute" : "store");
        const Decoded alone = decoded_in_batches(ctx, model, mode, 1);
        for (const int64_t batch : {7, 64}) {
            const Decoded decoded = decoded_in_batches(ctx, model, mode, batch);
            size_t different = 0;
            for (size_t window = 0; window < decoded.size(); ++window) {
                ASSERT_EQ(decoded[window].size(), static_cast<size_t>(kSteps));
                for (size_t i = 0; i < decoded[window].size(); ++i)
                    different += decoded[window][i] != alone[window][i];
            }
            EXPECT_EQ(different, 0) << "tokens or log probabilities at batch " << batch;
        }
        std::vector<std::pair<int32_t, uint32_t>> tokens;
        for (const auto& window : alone) tokens.insert(tokens.end(), window.begin(), window.end());
        std::sort(tokens.begin(), tokens.end());
        tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
        EXPECT_GT(tokens.size(), 1000u) << "the rows say the same: their bits prove nothing";
    }
}

}  // namespace
}  // namespace hark::test
