// Norms and rotary positions of heads in registers: a few neighbouring threads per head.
#pragma once

#include "kernels/elementwise/rows.cuh"

namespace hark::cuda {

// Channels of a thread: the angles of more of them would take longer than they save in one row.
constexpr int kRopePack = 2;

struct RopeArgs {
    void *keys, *values;
    const int *query_start, *slot, *length, *position;
    const float *frequencies, *q_norm, *k_norm;
    float scale, q_eps, k_eps;
    int64_t slots, capacity, q_width, k_width, v_width;
    int heads, kv_heads, d, half, blocks;  // half: number of frequencies; blocks: per sequence
    int lanes;                             // threads of a head: a power of two up to 32
};

// The cosines and sines of V angles, from the one of channel c on.
template <int V>
struct Turns {
    float cosine[V], sine[V];

    __device__ Turns(const RopeArgs& args, int c, int position) {
        if (c >= args.half) return;
        for (int v = 0; v < V; ++v) {
            sincosf(static_cast<float>(position) * args.frequencies[c + v], &sine[v], &cosine[v]);
            cosine[v] *= args.scale;
            sine[v] *= args.scale;
        }
    }
};

// A head's V channels from c on and, if they turn, those that turn with them: from c + half on.
template <int V>
struct Channels {
    float low[V], high[V];
    int c;
    bool turn;

    Channels() = default;
    // Item i of a head: first the channels that turn, then the others.
    template <class X>
    __device__ Channels(const X* head, int i, int half)
        : c(i * V < half ? i * V : half + i * V), turn(i * V < half) {
        const Pack<X, V> first = load_pack<V>(head + c);
        const Pack<X, V> second = turn ? load_pack<V>(head + c + half) : Pack<X, V>{};
        for (int v = 0; v < V; ++v) low[v] = to_f32(first.values[v]);
        for (int v = 0; v < V; ++v) high[v] = to_f32(second.values[v]);
    }
    __device__ float squares() const {
        float sum = 0;
        for (int v = 0; v < V; ++v) sum = fmaf(low[v], low[v], fmaf(high[v], high[v], sum));
        return sum;
    }
    __device__ void norm(float factor, const float* weights, int half) {
        for (int v = 0; v < V; ++v) {
            low[v] *= factor * weights[c + v];
            if (turn) high[v] *= factor * weights[c + half + v];
        }
    }
    __device__ void rotate(const Turns<V>& by) {
        if (!turn) return;
        for (int v = 0; v < V; ++v) {
            const float x = low[v], y = high[v];
            low[v] = x * by.cosine[v] - y * by.sine[v];
            high[v] = y * by.cosine[v] + x * by.sine[v];
        }
    }
    template <class X>
    __device__ void store(X* head, int half) const {
        Pack<X, V> first, second;
        for (int v = 0; v < V; ++v) first.values[v] = from_f32<X>(low[v]);
        for (int v = 0; v < V; ++v) second.values[v] = from_f32<X>(high[v]);
        store_pack(head + c, first);
        if (turn) store_pack(head + c + half, second);
    }
};

// What a row of d channels is multiplied with to be normed, before its weights; squares: a thread's
// part of their sum. For all threads of a warp, of which `lanes` neighbours have a row.
__device__ inline float norm_factor(float squares, int lanes, int d, float eps) {
    for (int step = lanes / 2; step > 0; step /= 2)
        squares += __shfl_xor_sync(0xffffffff, squares, step);
    return rsqrtf(squares / d + eps);
}

// What rope_append's kernel gets, except for `lanes`.
RopeArgs rope_args(const Tensor& keys, const Tensor& values, const Columns& q, const Columns& k,
                   const Columns& v, int64_t heads, const Tensor& position, const Rope& rope,
                   const Norm& q_norm, const Norm& k_norm, const BatchLayout& rows);

}  // namespace hark::cuda
