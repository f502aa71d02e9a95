// The softmax of FlashAttention: scores arrive tile by tile; sums shrink if a larger score arrives.
// Source: Milakov & Gimelshein 2018, algorithm 3; Dao et al. 2022, algorithm 1.
#pragma once

#include "kernels/attention/attention_kernels.cuh"

namespace hark::cuda {

// State of a lane for two rows of a warp's 16, lane / 4 and lane / 4 + 8; the sums of p * v are
// separate. Of every 8 columns the matrix units give a lane two neighbours of each row.
struct OnlineSoftmax {
    float largest[2] = {-INFINITY, -INFINITY};
    float sums[2] = {};  // over this lane's p
};

// `shift`: a row's largest score so far times the scale, or 0 if there is none (infinities have no
// difference). `kept`: the factor for the row's sums so far.
struct Shrinking {
    float shift, kept;
};

// Raises `largest` to the row's maximum. `highest`: the maximum of this lane's scores of the row
// and of `largest`.
__device__ inline Shrinking raise(float& largest, float highest, float scale_log2) {
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffff, highest, 1));
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffff, highest, 2));
    const float shift = highest == -INFINITY ? 0.0f : highest * scale_log2;
    const float kept = exp2_fast(fmaf(largest, scale_log2, -shift));
    largest = highest;
    return {shift, kept};
}

// scores become p = 2^((score - largest so far) * scale); acc is rescaled to match. scale > 0, so
// the largest score is also the largest scaled one. Layout: mma.m16n8k16's fragments.
template <int N, int C>
__device__ void soften(float (&scores)[N][4], float (&acc)[C][4], OnlineSoftmax& rows,
                       float scale_log2) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float highest = rows.largest[half];
#pragma unroll
        for (int n = 0; n < N; ++n)
            highest = fmaxf(highest, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
        const Shrinking by = raise(rows.largest[half], highest, scale_log2);
        rows.sums[half] *= by.kept;
#pragma unroll
        for (int c = 0; c < C; ++c) {
            acc[c][2 * half] *= by.kept;
            acc[c][2 * half + 1] *= by.kept;
        }
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; ++i) {
                scores[n][i] = exp2_fast(fmaf(scores[n][i], scale_log2, -by.shift));
                rows.sums[half] += scores[n][i];
            }
    }
}

// The same for wgmma's fragments. acc is not changed; `kept` is the factor for it.
template <int N>
__device__ void soften(float (&scores)[N], OnlineSoftmax& rows, float (&kept)[2],
                       float scale_log2) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float highest = rows.largest[half], other = -INFINITY;
#pragma unroll
        for (int i = 2 * half; i < N; i += 4) {
            highest = fmaxf(highest, scores[i]);
            other = fmaxf(other, scores[i + 1]);
        }
        const Shrinking by = raise(rows.largest[half], fmaxf(highest, other), scale_log2);
        kept[half] = by.kept;
        float sum = 0, odd = 0;
#pragma unroll
        for (int i = 2 * half; i < N; i += 4) {
            sum += scores[i] = exp2_fast(fmaf(scores[i], scale_log2, -by.shift));
            odd += scores[i + 1] = exp2_fast(fmaf(scores[i + 1], scale_log2, -by.shift));
        }
        rows.sums[half] = fmaf(rows.sums[half], kept[half], sum + odd);
    }
}

}  // namespace hark::cuda
