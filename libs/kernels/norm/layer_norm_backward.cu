// layer_norm's gradient on the GPU. A row is read once, into shared memory, while the previous one
// is computed. A thread keeps the sums of its columns' gradients of w and b, and of dx, over all
// its rows.
#include <cuda_pipeline.h>

#include "kernels/cuda/hopper.cuh"
#include "kernels/elementwise/elementwise.cuh"
#include "kernels/linear/column_sums.cuh"

namespace hark::cuda {
namespace {

constexpr int kBackwardWarps = 4;      // per block if a warp takes a row
constexpr int kMostBackwardPacks = 7;  // per thread then; their sums are 16 registers each
constexpr int kPacksOfBlock = 3;
constexpr int kMostNormThreads = 512, kBackwardThreadsOfAny = 256;
constexpr size_t kNormOwnBytes = 16384;  // shared memory that is not for rows

struct NormBackward {
    const float* w;
    float* partial;  // (blocks, 2 C): of dw, of db; with sums of dx (blocks, 3 C)
    int64_t rows;
    int64_t channels;
    float eps;
};

// Sums of a row's second pass: with d = x - mean and g = dy w, of d, d^2, g and g d.
struct Sums {
    float d, squares, g, projected;
};

__device__ Sums warp_sums(const Sums& of) {
    return {warp_sum(of.d), warp_sum(of.squares), warp_sum(of.g), warp_sum(of.projected)};
}

// dx += inverse (g - g_mean - h gh_mean), h = (x - mean) inverse. The mean has a rounding error;
// the sum of the remainders corrects it.
struct Gradient {
    float mean, inverse, lift, g_mean, gh_mean;

    // part: 1 / C
    __device__ Gradient(float mean, const Sums& sums, float part, float eps) : mean(mean) {
        const float off = sums.d * part;
        inverse = rsqrtf(fmaxf(sums.squares * part - off * off, 0.0f) + eps);
        lift = -off * inverse;
        g_mean = sums.g * part;
        gh_mean = inverse * (sums.projected - off * sums.g) * part;
    }
    __device__ float normalized(float x) const { return fmaf(x - mean, inverse, lift); }
    __device__ float add_to(float dx, float g, float h) const {
        return fmaf(inverse, fmaf(-gh_mean, h, g - g_mean), dx);
    }
};

// Sums over the warps of a team; a team of one warp needs no memory for them.
template <bool kBlock>
struct Team {
    float first[kMostNormThreads / 32];
    Sums second[kMostNormThreads / 32];

    // All read each of the two before the other's barrier, so neither is overwritten too early.
    __device__ float sum(float x) {
        x = warp_sum(x);
        if constexpr (!kBlock) return x;
        if (threadIdx.x % 32 == 0) first[threadIdx.x / 32] = x;
        __syncthreads();
        float total = 0;
        for (int i = 0; i < static_cast<int>(blockDim.x) / 32; ++i) total += first[i];
        return total;
    }
    __device__ Sums sum(Sums of) {
        of = warp_sums(of);
        if constexpr (!kBlock) return of;
        if (threadIdx.x % 32 == 0) second[threadIdx.x / 32] = of;
        __syncthreads();
        Sums total{};
        for (int i = 0; i < static_cast<int>(blockDim.x) / 32; ++i) {
            total.d += second[i].d, total.squares += second[i].squares;
            total.g += second[i].g, total.projected += second[i].projected;
        }
        return total;
    }
};

// Makes the compiler read a value again instead of keeping it: there are too few registers.
__device__ inline void forget(int& place) { asm volatile("" : "+r"(place)); }

// One block per row (kBlock) or one warp per row; P packs of V columns per thread. A thread reads
// from shared memory only what it copied there itself.
template <class T, int V, int P, bool kBlock, bool kSums>
__global__ void __launch_bounds__(kBlock ? kMostNormThreads : 32 * kBackwardWarps)
    norm_backward_kernel(NormBackward args, T* dx, const T* __restrict__ dy,
                         const T* __restrict__ x) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Team<kBlock> shared;
    const int width = kBlock ? blockDim.x : 32, teams = kBlock ? 1 : kBackwardWarps;
    const int lane = threadIdx.x % width, team = threadIdx.x / width;
    const auto channels = static_cast<int>(args.channels);
    const float part = 1.0f / static_cast<float>(channels);
    const auto column = [&](int p) { return (p * width + lane) * V; };
    // P is the smallest number of packs for a row: all packs except the last are whole.
    const auto inside = [&](int p) { return p < P - 1 || column(p) < channels; };
    const int64_t step = int64_t{gridDim.x} * teams;
    // Rows of x, dy and dx, two each: of this turn and of the next.
    T* held = reinterpret_cast<T*>(memory) + team * 6 * channels;
    const auto fetch = [&](int64_t row, T* to) {
        for (int p = 0; p < P && row < args.rows; ++p) {
            if (!inside(p)) continue;
            const int64_t at = row * channels + column(p);
            __pipeline_memcpy_async(to + column(p), x + at, 16);
            __pipeline_memcpy_async(to + channels + column(p), dy + at, 16);
            __pipeline_memcpy_async(to + 2 * channels + column(p), dx + at, 16);
        }
        __pipeline_commit();
    };
    constexpr int kKinds = kSums ? 3 : 2;
    float totals[kKinds][P][V] = {};  // of dw, db and dx
    int64_t row = int64_t{blockIdx.x} * teams + team;
    fetch(row, held);
    for (int turn = 0; row < args.rows; row += step, turn ^= 1) {
        fetch(row + step, held + (turn ^ 1) * 3 * channels);
        __pipeline_wait_prior(1);
        int own = turn * 3 * channels;
        const auto held_pack = [&](int which, int p) {
            return load_pack<V>(held + own + which * channels + column(p));
        };
        float sum = 0;
        for (int p = 0; p < P; ++p) {
            if (!inside(p)) continue;
            for (const float value : to_floats(held_pack(0, p)).values) sum += value;
        }
        const float mean = shared.sum(sum) * part;
        forget(own);
        Sums sums{};
        for (int p = 0; p < P; ++p) {
            if (!inside(p)) continue;
            const auto xs = to_floats(held_pack(0, p)), dys = to_floats(held_pack(1, p));
            const Pack<float, V> w = load_pack<V>(args.w + column(p));
            for (int v = 0; v < V; ++v) {
                const float d = xs.values[v] - mean, g = dys.values[v] * w.values[v];
                sums.d += d, sums.g += g;
                sums.squares = fmaf(d, d, sums.squares);
                sums.projected = fmaf(g, d, sums.projected);
            }
        }
        const Gradient gradient(mean, shared.sum(sums), part, args.eps);
        forget(own);
        for (int p = 0; p < P; ++p) {
            if (!inside(p)) continue;
            const auto xs = to_floats(held_pack(0, p)), dys = to_floats(held_pack(1, p));
            const auto dxs = to_floats(held_pack(2, p));
            const Pack<float, V> w = load_pack<V>(args.w + column(p));
            Pack<T, V> out;
            for (int v = 0; v < V; ++v) {
                const float from = dys.values[v], h = gradient.normalized(xs.values[v]);
                out.values[v] = from_f32<T>(gradient.add_to(dxs.values[v], from * w.values[v], h));
                totals[0][p][v] = fmaf(from, h, totals[0][p][v]);
                totals[1][p][v] += from;
                if constexpr (kSums) totals[2][p][v] += to_f32(out.values[v]);
            }
            store_pack(dx + row * channels + column(p), out);
        }
    }
    float* to = args.partial + blockIdx.x * kKinds * args.channels;
    if constexpr (kBlock) {
        for (int p = 0; p < P; ++p)
            for (int v = 0; v < V && inside(p); ++v)
                for (int kind = 0; kind < kKinds; ++kind)
                    to[kind * args.channels + column(p) + v] = totals[kind][p][v];
    } else {
        __shared__ float sums[kKinds][kBackwardWarps][32 * V];
        for (int p = 0; p < P; ++p) {
            for (int v = 0; v < V; ++v)
                for (int kind = 0; kind < kKinds; ++kind)
                    sums[kind][team][lane * V + v] = totals[kind][p][v];
            __syncthreads();
            for (int i = threadIdx.x; i < kKinds * 32 * V; i += 32 * kBackwardWarps) {
                const int which = i / (32 * V), c = i % (32 * V);
                float total = 0;
                for (int t = 0; t < kBackwardWarps; ++t) total += sums[which][t][c];
                if (p * 32 * V + c < args.channels)
                    to[which * args.channels + p * 32 * V + c] = total;
            }
            __syncthreads();
        }
    }
}

// Rows of any width and alignment, read three times; the sums of columns are kept in memory.
template <class T, bool kSums>
__global__ void __launch_bounds__(kBackwardThreadsOfAny)
    any_norm_backward_kernel(NormBackward args, T* dx, const T* __restrict__ dy,
                             const T* __restrict__ x) {
    __shared__ Team<true> shared;
    const float part = 1.0f / static_cast<float>(args.channels);
    constexpr int kKinds = kSums ? 3 : 2;
    float *dw = args.partial + blockIdx.x * kKinds * args.channels, *db = dw + args.channels;
    for (int64_t c = threadIdx.x; c < kKinds * args.channels; c += kBackwardThreadsOfAny) dw[c] = 0;
    __syncthreads();
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        const int64_t start = row * args.channels;
        float sum = 0;
        for (int64_t c = threadIdx.x; c < args.channels; c += kBackwardThreadsOfAny)
            sum += to_f32(x[start + c]);
        const float mean = shared.sum(sum) * part;
        Sums sums{};
        for (int64_t c = threadIdx.x; c < args.channels; c += kBackwardThreadsOfAny) {
            const float d = to_f32(x[start + c]) - mean, g = to_f32(dy[start + c]) * args.w[c];
            sums.d += d, sums.g += g;
            sums.squares = fmaf(d, d, sums.squares);
            sums.projected = fmaf(g, d, sums.projected);
        }
        const Gradient gradient(mean, shared.sum(sums), part, args.eps);
        for (int64_t c = threadIdx.x; c < args.channels; c += kBackwardThreadsOfAny) {
            const float from = to_f32(dy[start + c]), h = gradient.normalized(to_f32(x[start + c]));
            const T out = from_f32<T>(gradient.add_to(to_f32(dx[start + c]), from * args.w[c], h));
            dx[start + c] = out;
            if constexpr (kSums) db[args.channels + c] += to_f32(out);
            dw[c] = fmaf(from, h, dw[c]);
            db[c] += from;
        }
    }
}

template <class T>
using Kernel = void (*)(NormBackward, T*, const T*, const T*);

// The kernel with one warp per row of `packs` packs per lane.
template <class T, bool kSums, int P = 1>
Kernel<T> warp_kernel(int64_t packs) {
    if constexpr (P < kMostBackwardPacks)
        if (packs > P) return warp_kernel<T, kSums, P + 1>(packs);
    return norm_backward_kernel<T, kWidth<T>, P, false, kSums>;
}

template <class T, bool kSums>
struct Launch {
    Kernel<T> kernel = any_norm_backward_kernel<T, kSums>;
    int64_t threads = kBackwardThreadsOfAny, rows = 1;  // rows per block at once
    size_t shared_bytes = 0;

    Launch(int64_t channels, bool aligned) {
        const int64_t packs = ceil_div(channels, 32 * kWidth<T>);  // per row in one warp
        const bool in_warp = packs <= kMostBackwardPacks;
        const size_t bytes =
            6 * static_cast<size_t>(channels) * sizeof(T) * (in_warp ? kBackwardWarps : 1);
        if (!aligned || channels % kWidth<T> != 0 ||
            bytes + kNormOwnBytes > static_cast<size_t>(shared_limit()) ||
            packs > kPacksOfBlock * kMostNormThreads / 32)
            return;
        shared_bytes = bytes;
        kernel = in_warp ? warp_kernel<T, kSums>(packs)
                         : norm_backward_kernel<T, kWidth<T>, kPacksOfBlock, true, kSums>;
        threads = 32 * (in_warp ? kBackwardWarps : ceil_div(packs, kPacksOfBlock));
        rows = in_warp ? kBackwardWarps : 1;
        CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared_bytes)));
    }
};

// Computes dx and returns the blocks' partial sums (blocks, 2 C), or (blocks, 3 C) if kSums.
template <class T, bool kSums>
Tensor run_layer_norm_backward(Context& ctx, const Tensor& dx, const Tensor& dy, const Tensor& x,
                               const Tensor& w, float eps) {
    const int64_t rows = x.dim(0), channels = x.dim(1);
    const Launch<T, kSums> launch(channels, in_16_bytes({dx.data, dy.data, x.data, w.data}));
    const int64_t blocks =
        std::min(ceil_div(rows, launch.rows),
                 blocks_at_once(ctx, launch.kernel, launch.threads, launch.shared_bytes));
    const Tensor partial = ctx.arena.tensor(Dtype::f32, {blocks, (kSums ? 3 : 2) * channels});
    const NormBackward args{w.as<float>(), partial.as<float>(), rows, channels, eps};
    launch.kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(launch.threads),
                    launch.shared_bytes, stream_of(ctx)>>>(args, static_cast<T*>(dx.data),
                                                           static_cast<const T*>(dy.data),
                                                           static_cast<const T*>(x.data));
    CUDA_CHECK(cudaGetLastError());
    return partial;
}

}  // namespace

void layer_norm_backward(Context& ctx, Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x,
                         Tensor w, float eps, Tensor sums) {
    const int64_t rows = x.dim(0), channels = x.dim(1);
    enter(ctx, {&dx, &dw, &db, &dy, &x, &w, &sums});
    if (rows == 0) return;
    const Arena::Scope scope(ctx.arena);
    Tensor partial;
    with_activation_type("layer_norm_backward", x, [&](auto value) {
        using T = decltype(value);
        partial = sums ? run_layer_norm_backward<T, true>(ctx, dx, dy, x, w, eps)
                       : run_layer_norm_backward<T, false>(ctx, dx, dy, x, w, eps);
    });
    add_partials(ctx, dw, partial, 0);
    add_partials(ctx, db, partial, channels);
    if (sums) add_partials(ctx, sums, partial, 2 * channels);
}

}  // namespace hark::cuda
