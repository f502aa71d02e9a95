// The ladder: one operation in forms from the plainest to that of Hopper's own instructions. Each
// is a small kernel to read; the tools run none of them. docs/kernels/ladder.md explains the steps.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hark {
struct Context;
}

namespace hark::ladder {

using Bf16 = __nv_bfloat16;

// A form of an operation. Its launch has no error check of its own.
struct Rung {
    const char* name;
    double predicted;  // times as fast as the rung before; written before it was measured
    std::function<void(cudaStream_t)> launch;
};

// y (m, n) = x (m, k) times the transpose of w (n, k). m and n are multiples of 128, k of 64.
struct ProductArgs {
    Bf16* y;
    const Bf16 *x, *w;
    int m, n, k;
};
std::vector<Rung> product_rungs(const ProductArgs& of);

// out = softmax(q k^T / 8) v, (heads, t, kHeadSize) each; t is a multiple of 128. The first rung
// alone writes its scores: (heads, t, t).
inline constexpr int kHeadSize = 64;
struct AttentionArgs {
    Bf16* out;
    const Bf16 *q, *k, *v;
    float* scores;
    int heads, t;
};
std::vector<Rung> attention_rungs(const AttentionArgs& of);

// y = (x - mean) / sqrt(variance + 1e-5) * w + b, per row: (rows, kNormWidth).
inline constexpr int kNormWidth = 1280;
struct NormArgs {
    Bf16* y;
    const Bf16* x;
    const float *w, *b;
    int rows;
};
std::vector<Rung> norm_rungs(const NormArgs& of);

// y = softmax of each row of x: (rows, kSoftmaxWidth).
inline constexpr int kSoftmaxWidth = 1536;
struct SoftmaxArgs {
    float* y;
    const float* x;
    int rows;
};
std::vector<Rung> softmax_rungs(const SoftmaxArgs& of);

// Log-mel frames in float32 by cuFFT's transforms, as a peer of audio/log_mel.h: frames (count,
// n_mels) of samples ((count - 1) * 160 + 400). filters (201, n_mels), all in GPU memory. Throws
// Error if cuFFT fails.
class CufftMel {
  public:
    CufftMel(const float* filters, int n_mels, int count);
    ~CufftMel();
    CufftMel(const CufftMel&) = delete;
    void launch(float* frames, const float* samples, cudaStream_t stream);

  private:
    const float* filters_;
    int n_mels_, count_;
    int plan_ = 0;  // cufftHandle
    float* windows_ = nullptr;
    float2* bins_ = nullptr;
};

// What a step of one row costs in addition to its bytes: microseconds of an edge between two
// kernels of a graph, of a barrier of all blocks, and TB/s read with some bytes in flight. `data`:
// `bytes` of random numbers, several times the L2 cache; counter: one number. Throws Error.
struct CostArgs {
    Context& ctx;
    const void* data;
    size_t bytes;
    unsigned* counter;
};
struct Cost {
    const char* what;
    std::string form;
    double value;
    const char* unit;
};
std::vector<Cost> launch_costs(const CostArgs& of);

}  // namespace hark::ladder
