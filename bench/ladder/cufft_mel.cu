// Log-mel frames by cuFFT, in float32.
#include <cufft.h>

#include "audio/mel_frame.h"
#include "kernels/cuda/cuda_common.cuh"
#include "ladder/ladder.h"

namespace hark::ladder {
namespace {

using mel_frame::kBins;
using mel_frame::kHop;
using mel_frame::kWindow;

void check(cufftResult status, const char* what) {
    require(status == CUFFT_SUCCESS, what, ": cuFFT's error ", static_cast<int>(status));
}

// A block per frame.
__global__ void apply_window(float* windows, const float* samples) {
    const int64_t frame = blockIdx.x;
    for (int i = threadIdx.x; i < kWindow; i += blockDim.x)
        windows[frame * kWindow + i] =
            samples[frame * kHop + i] * (0.5f - 0.5f * cospif(2.0f * i / kWindow));
}

__global__ void apply_filters(float* frames, const float2* bins, const float* filters, int n_mels) {
    __shared__ float power[kBins];
    const int64_t frame = blockIdx.x;
    for (int i = threadIdx.x; i < kBins; i += blockDim.x) {
        const float2 bin = bins[frame * kBins + i];
        power[i] = bin.x * bin.x + bin.y * bin.y;
    }
    __syncthreads();
    const int mel = threadIdx.x;
    if (mel >= n_mels) return;
    float sum = 0;
    for (int i = 0; i < kBins; ++i) sum += power[i] * filters[i * n_mels + mel];
    frames[frame * n_mels + mel] = log10f(fmaxf(sum, 1e-10f));
}

}  // namespace

CufftMel::CufftMel(const float* filters, int n_mels, int count)
    : filters_(filters), n_mels_(n_mels), count_(count) {
    int points = kWindow;
    check(
        cufftPlanMany(&plan_, 1, &points, nullptr, 1, kWindow, nullptr, 1, kBins, CUFFT_R2C, count),
        "a plan");
    CUDA_CHECK(cudaMalloc(&windows_, sizeof(float) * kWindow * static_cast<size_t>(count)));
    CUDA_CHECK(cudaMalloc(&bins_, sizeof(float2) * kBins * static_cast<size_t>(count)));
}

CufftMel::~CufftMel() {
    cufftDestroy(plan_);
    cudaFree(windows_);
    cudaFree(bins_);
}

void CufftMel::launch(float* frames, const float* samples, cudaStream_t stream) {
    apply_window<<<count_, 128, 0, stream>>>(windows_, samples);
    check(cufftSetStream(plan_, stream), "a stream");
    check(cufftExecR2C(plan_, windows_, reinterpret_cast<cufftComplex*>(bins_)), "the transforms");
    apply_filters<<<count_, 128, 0, stream>>>(frames, bins_, filters_, n_mels_);
}

}  // namespace hark::ladder
