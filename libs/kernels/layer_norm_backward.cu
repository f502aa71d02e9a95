// layer_norm's gradient on the GPU: a row is read once and held in registers; a thread keeps the
// sums of its columns' gradients of w and b over all rows that it sees.
#include "kernels/column_sums.cuh"
#include "kernels/elementwise.cuh"
#include "kernels/gradients.cuh"

namespace hark::cuda {
namespace {

constexpr int kWarps = 4;      // of a block where a warp takes a row
constexpr int kMostPacks = 3;  // of a thread
constexpr int kMostThreads = 512, kThreadsOfAny = 256;

struct NormBackward {
    const float* w;
    float* partial;  // (blocks, 2 C): of dw, of db
    int64_t rows;
    int64_t channels;
    float eps;
};

// What a row's second pass sums: with d = x - mean and g = dy w, d, d^2, g and g d.
struct Sums {
    float d, squares, g, projected;
};

__device__ Sums warp_sums(const Sums& of) {
    return {warp_sum(of.d), warp_sum(of.squares), warp_sum(of.g), warp_sum(of.projected)};
}

// dx += inverse (g - g_mean - h gh_mean), h = (x - mean) inverse: the same in every kernel here.
// The mean is off by its rounding, which the sum of what is left tells.
struct Gradient {
    float mean, inverse, g_mean, gh_mean;

    __device__ Gradient(float mean, const Sums& sums, float count, float eps) {
        const float off = sums.d / count;
        this->mean = mean;
        shift = off;
        inverse = rsqrtf(fmaxf(sums.squares / count - off * off, 0.0f) + eps);
        g_mean = sums.g / count;
        gh_mean = inverse * (sums.projected - off * sums.g) / count;
    }
    __device__ float normalized(float x) const { return (x - mean - shift) * inverse; }
    __device__ float of_x(float g, float h) const { return inverse * (g - g_mean - h * gh_mean); }

  private:
    float shift;
};

// Sums over the warps of a team; a team of one warp needs no memory for it.
template <bool kBlock>
struct Team {
    float first[kMostThreads / 32];
    Sums second[kMostThreads / 32];

    // Each of the two is read by all before the other one's barrier, so neither is overwritten.
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

// Makes the compiler read the value anew from where it is: it would rather keep what it has
// computed of it, in twice the registers.
template <class T, int V>
__device__ void forget(Pack<T, V>& pack) {
    static_assert(sizeof pack == 16);
    auto* words = reinterpret_cast<uint32_t*>(&pack);
    for (int i = 0; i < 4; ++i) asm volatile("" : "+r"(words[i]));
}
__device__ inline void forget(const float*& from) { asm volatile("" : "+l"(from)); }

// A block a row (kBlock), or a warp a row; P packs of V columns a thread.
template <class T, int V, int P, bool kBlock>
__global__ void __launch_bounds__(kBlock ? kMostThreads : 32 * kWarps, kBlock ? 1 : 4)
    norm_backward_kernel(NormBackward args, T* dx, const T* __restrict__ dy,
                         const T* __restrict__ x) {
    __shared__ Team<kBlock> shared;
    const int width = kBlock ? blockDim.x : 32, teams = kBlock ? 1 : kWarps;
    const int lane = threadIdx.x % width, team = threadIdx.x / width;
    const auto count = static_cast<float>(args.channels);
    const auto column = [&](int p) { return (p * width + lane) * V; };
    const auto inside = [&](int p) { return column(p) < args.channels; };
    float dw[P][V] = {}, db[P][V] = {};
    const float* weights = args.w;
    for (int64_t row = int64_t{blockIdx.x} * teams + team; row < args.rows;
         row += int64_t{gridDim.x} * teams) {
        const int64_t start = row * args.channels;
        Pack<T, V> xs[P], dys[P], dxs[P];
        for (int p = 0; p < P; ++p) {
            if (!inside(p)) continue;
            xs[p] = load_pack<V>(x + start + column(p));
            dys[p] = load_pack<V>(dy + start + column(p));
            dxs[p] = load_pack<V>(dx + start + column(p));
        }
        float sum = 0;
        for (int p = 0; p < P; ++p)
            for (int v = 0; v < V && inside(p); ++v) sum += to_f32(xs[p].values[v]);
        const float mean = shared.sum(sum) / count;
        Sums sums{};
        for (int p = 0; p < P; ++p) {
            if (!inside(p)) continue;
            forget(xs[p]);
            const Pack<float, V> w = load_pack<V>(weights + column(p));
            for (int v = 0; v < V; ++v) {
                const float d = to_f32(xs[p].values[v]) - mean;
                const float g = to_f32(dys[p].values[v]) * w.values[v];
                sums.d += d, sums.g += g;
                sums.squares = fmaf(d, d, sums.squares);
                sums.projected = fmaf(g, d, sums.projected);
            }
        }
        const Gradient gradient(mean, shared.sum(sums), count, args.eps);
        forget(weights);
        for (int p = 0; p < P; ++p) {
            if (!inside(p)) continue;
            forget(xs[p]);
            forget(dys[p]);
            const Pack<float, V> w = load_pack<V>(weights + column(p));
            for (int v = 0; v < V; ++v) {
                const float from = to_f32(dys[p].values[v]);
                const float h = gradient.normalized(to_f32(xs[p].values[v]));
                dxs[p].values[v] =
                    from_f32<T>(to_f32(dxs[p].values[v]) + gradient.of_x(from * w.values[v], h));
                dw[p][v] = fmaf(from, h, dw[p][v]);
                db[p][v] += from;
            }
            store_pack(dx + start + column(p), dxs[p]);
        }
    }
    float* to = args.partial + blockIdx.x * 2 * args.channels;
    if constexpr (kBlock) {
        for (int p = 0; p < P; ++p)
            for (int v = 0; v < V && inside(p); ++v) {
                to[column(p) + v] = dw[p][v];
                to[args.channels + column(p) + v] = db[p][v];
            }
    } else {
        __shared__ float sums[2][kWarps][32 * V];
        for (int p = 0; p < P; ++p) {
            for (int v = 0; v < V; ++v) {
                sums[0][team][lane * V + v] = dw[p][v];
                sums[1][team][lane * V + v] = db[p][v];
            }
            __syncthreads();
            for (int i = threadIdx.x; i < 2 * 32 * V; i += 32 * kWarps) {
                const int which = i / (32 * V), c = i % (32 * V);
                float total = 0;
                for (int t = 0; t < kWarps; ++t) total += sums[which][t][c];
                if (p * 32 * V + c < args.channels)
                    to[which * args.channels + p * 32 * V + c] = total;
            }
            __syncthreads();
        }
    }
}

// Rows of any width and alignment, read three times; the sums of columns are kept in memory.
template <class T>
__global__ void __launch_bounds__(kThreadsOfAny)
    any_norm_backward_kernel(NormBackward args, T* dx, const T* __restrict__ dy,
                             const T* __restrict__ x) {
    __shared__ Team<true> shared;
    const auto count = static_cast<float>(args.channels);
    float *dw = args.partial + blockIdx.x * 2 * args.channels, *db = dw + args.channels;
    for (int64_t c = threadIdx.x; c < 2 * args.channels; c += kThreadsOfAny) dw[c] = 0;
    __syncthreads();
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        const int64_t start = row * args.channels;
        float sum = 0;
        for (int64_t c = threadIdx.x; c < args.channels; c += kThreadsOfAny)
            sum += to_f32(x[start + c]);
        const float mean = shared.sum(sum) / count;
        Sums sums{};
        for (int64_t c = threadIdx.x; c < args.channels; c += kThreadsOfAny) {
            const float d = to_f32(x[start + c]) - mean, g = to_f32(dy[start + c]) * args.w[c];
            sums.d += d, sums.g += g;
            sums.squares = fmaf(d, d, sums.squares);
            sums.projected = fmaf(g, d, sums.projected);
        }
        const Gradient gradient(mean, shared.sum(sums), count, args.eps);
        for (int64_t c = threadIdx.x; c < args.channels; c += kThreadsOfAny) {
            const float from = to_f32(dy[start + c]), h = gradient.normalized(to_f32(x[start + c]));
            dx[start + c] = from_f32<T>(to_f32(dx[start + c]) + gradient.of_x(from * args.w[c], h));
            dw[c] = fmaf(from, h, dw[c]);
            db[c] += from;
        }
    }
}

template <class T, int P, bool kBlock>
void launch(Context& ctx, const NormBackward& args, T* dx, const T* dy, const T* x, int64_t blocks,
            int64_t threads) {
    norm_backward_kernel<T, kWidth<T>, P, kBlock>
        <<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, stream_of(ctx)>>>(
            args, dx, dy, x);
}

// How a row lies over threads: `packs` of 16 bytes each, `warps` a row; none of these where the row
// is too wide or does not begin at a whole 16 bytes.
struct Shape {
    int packs = 0;
    int64_t warps = 0, threads = kThreadsOfAny, rows = 1;  // rows of a block at once

    Shape(int64_t channels, int64_t width, bool aligned) {
        const int64_t count = ceil_div(channels, width * 32);  // packs of a row in one warp
        if (!aligned || channels % width != 0 || count > kMostPacks * kMostThreads / 32) return;
        warps = ceil_div(count, int64_t{kMostPacks});
        packs = static_cast<int>(ceil_div(count, warps));
        threads = 32 * (warps == 1 ? kWarps : warps);
        rows = warps == 1 ? kWarps : 1;
    }
};

}  // namespace

void layer_norm_backward(Context& ctx, Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x,
                         Tensor w, float eps) {
    require(x.rank == 2 && x.dim(1) > 0, "layer_norm_backward: expected x (T, C), found ", x);
    const int64_t rows = x.dim(0), channels = x.dim(1);
    check_tensor("layer_norm_backward", "dx", dx, x.dtype, {rows, channels});
    check_tensor("layer_norm_backward", "dy", dy, x.dtype, {rows, channels});
    for (const Tensor& vector : {w, dw, db})
        check_tensor("layer_norm_backward", "w, dw and db", vector, Dtype::f32, {channels});
    enter(ctx, {&dx, &dw, &db, &dy, &x, &w});
    if (rows == 0) return;
    with_activation_type("layer_norm_backward", x, [&](auto value) {
        using T = decltype(value);
        const Shape shape(channels, kWidth<T>, in_16_bytes({dx.data, dy.data, x.data, w.data}));
        const int64_t blocks =
            std::min(ceil_div(rows, shape.rows), blocks_at_once(ctx, shape.threads));
        const Arena::Scope scope(ctx.arena);
        const Tensor partial = ctx.arena.tensor(Dtype::f32, {blocks, 2 * channels});
        const NormBackward args{w.as<float>(), partial.as<float>(), rows, channels, eps};
        auto* to = static_cast<T*>(dx.data);
        const auto *gradient = static_cast<const T*>(dy.data), *in = static_cast<const T*>(x.data);
        const auto run = [&](auto kernel) {
            kernel(ctx, args, to, gradient, in, blocks, shape.threads);
        };
        if (shape.packs == 0)
            any_norm_backward_kernel<<<static_cast<unsigned>(blocks), kThreadsOfAny, 0,
                                       stream_of(ctx)>>>(args, to, gradient, in);
        else if (shape.warps == 1)
            run(shape.packs == 1   ? launch<T, 1, false>
                : shape.packs == 2 ? launch<T, 2, false>
                                   : launch<T, 3, false>);
        else
            run(shape.packs <= 2 ? launch<T, 2, true> : launch<T, 3, true>);
        CUDA_CHECK(cudaGetLastError());
        add_partials(ctx, dw, partial, 0);
        add_partials(ctx, db, partial, channels);
    });
}

}  // namespace hark::cuda
