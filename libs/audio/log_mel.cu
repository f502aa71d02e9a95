// Log-mel frames on a GPU: four a block, each from its samples to its logarithms without leaving
// shared memory. A frame's 40 butterflies of radix 5 are as many threads.
#include "audio/log_mel.h"
#include "kernels/cuda/cuda_common.cuh"

namespace hark {
namespace {

using mel_frame::kHop;
using mel_frame::kPoints;

constexpr int kFrames = 4;
constexpr int kMelThreads = kFrames * mel_frame::kItems5;

// work(frame, item) for `items` pieces of each of the block's frames, then all threads meet.
template <class Work>
__device__ void for_each(int items, const Work& work) {
    for (int i = threadIdx.x; i < kFrames * items; i += kMelThreads) work(i / items, i % items);
    __syncthreads();
}

__global__ void __launch_bounds__(kMelThreads)
    log_mel_kernel(float* frames, const float* samples, int64_t count, int n_mels,
                   const mel_frame::Tables* tables) {
    __shared__ mel_frame::Complex<double> a[kFrames][kPoints], b[kFrames][kPoints];
    static_assert(sizeof b[0] >= mel_frame::kBins * sizeof(double));
    const int64_t first = int64_t{blockIdx.x} * kFrames;

    for_each(mel_frame::kItems5, [&](int frame, int item) {
        // After the last frame that one again: its threads have to meet the others.
        const float* window = samples + min(first + frame, count - 1) * kHop;
        const auto pair = [&](int i) {
            const float2 sample = reinterpret_cast<const float2*>(window)[i];
            return mel_frame::Complex<double>{sample.x * tables->window[2 * i],
                                              sample.y * tables->window[2 * i + 1]};
        };
        mel_frame::stage5<200, 1>(item, tables->roots, pair, a[frame]);
    });
    for_each(mel_frame::kItems5, [&](int frame, int item) {
        const auto point = [&](int i) { return a[frame][i]; };
        mel_frame::stage5<40, 5>(item, tables->roots, point, b[frame]);
    });
    for_each(mel_frame::kItems8,
             [&](int frame, int item) { mel_frame::stage8(item, b[frame], a[frame]); });
    const auto power = [&](int frame) { return reinterpret_cast<double*>(b[frame]); };
    for_each(mel_frame::kItemsPower, [&](int frame, int k) {
        mel_frame::power_of(k, a[frame], tables->roots[k], power(frame));
    });
    for_each(n_mels, [&](int frame, int m) {
        if (first + frame < count)
            frames[(first + frame) * n_mels + m] = static_cast<float>(
                mel_frame::log_mel_of<double, uint64_t>(m, *tables, power(frame)));
    });
}

void log_mel(Context& ctx, float* frames, const float* samples, int64_t count, int n_mels,
             const mel_frame::Tables* tables) {
    cuda::enter(ctx, {});
    if (count == 0) return;
    const dim3 blocks(static_cast<unsigned>(cuda::ceil_div(count, kFrames)));
    log_mel_kernel<<<blocks, kMelThreads, 0, cuda::stream_of(ctx)>>>(frames, samples, count, n_mels,
                                                                     tables);
    CUDA_CHECK(cudaGetLastError());
}

}  // namespace
}  // namespace hark

extern "C" __attribute__((visibility("default"))) const hark::CudaLogMel* hark_cuda_log_mel() {
    static const hark::CudaLogMel table = {hark::log_mel};
    return &table;
}
