// log-mel on a GPU: the CPU's bits.
#include <gtest/gtest.h>

#include <cstring>

#include "audio/log_mel.h"
#include "support/ops.h"

namespace hark {
namespace {

std::vector<float> frames_of(const std::shared_ptr<const MelFrames>& compute,
                             const std::vector<float>& samples, size_t step) {
    LogMel log_mel(compute);
    std::vector<float> frames;
    for (size_t at = 0; at < samples.size(); at += step)
        log_mel.push({samples.data() + at, std::min(step, samples.size() - at)}, frames);
    log_mel.finish(frames);
    return frames;
}

// How many values differ.
int64_t differing(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    int64_t count = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        count += std::memcmp(&a[i], &b[i], sizeof(float)) != 0;
    return count;
}

TEST(LogMelCuda, HasTheCpusBitsHoweverTheSamplesAreCut) {
    test::TestDevice gpu(test::kCudaF32Case);
    if (!gpu) GTEST_SKIP() << gpu.why_not();
    for (const int n_mels : {80, 128}) {
        const auto on_cpu = std::make_shared<const MelFrames>(n_mels);
        const auto on_gpu = std::make_shared<const MelFrames>(n_mels, &gpu.ctx());
        for (const int64_t n : {0, 1, 150, 201, 399, 5000, 48161, 1500017}) {
            // From a whisper, where rounding shows most, to what clips.
            for (const double deviation : {1e-4, 0.05, 1.0}) {
                const std::vector<float> samples = test::random_values(n, 7, deviation);
                const std::vector<float> expected = frames_of(on_cpu, samples, samples.size());
                for (const size_t step : {7777, 480000, 1 << 21}) {
                    const std::vector<float> found = frames_of(on_gpu, samples, step);
                    EXPECT_EQ(differing(found, expected), 0)
                        << n << " samples in pieces of " << step << ", " << n_mels << " mels";
                }
            }
        }
    }
}

TEST(LogMelCuda, SilenceAndFullScaleAreTheCpusToo) {
    test::TestDevice gpu(test::kCudaF32Case);
    if (!gpu) GTEST_SKIP() << gpu.why_not();
    const auto on_cpu = std::make_shared<const MelFrames>(80);
    const auto on_gpu = std::make_shared<const MelFrames>(80, &gpu.ctx());
    std::vector<float> loud(4000);
    for (size_t i = 0; i < loud.size(); ++i) loud[i] = i % 2 ? 3e38f : -3e38f;
    for (const std::vector<float>& samples : {std::vector<float>(4000, 0.0f), loud})
        EXPECT_EQ(differing(frames_of(on_gpu, samples, 4000), frames_of(on_cpu, samples, 4000)), 0);
}

}  // namespace
}  // namespace hark
