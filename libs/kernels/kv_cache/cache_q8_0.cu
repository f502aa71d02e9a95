// A cache of q8_0 on the GPU: written from rows, and read as numbers by kernels that need them.
#include "kernels/kv_cache/cache_rows.cuh"
#include "kernels/elementwise/rows.cuh"

namespace hark::cuda {
namespace {

constexpr int kQ8Threads = 256;
constexpr int kQ8Warps = kQ8Threads / 32;

struct Q8Args {
    uint8_t *keys, *values;
    const int *query_start, *slot, *length;
    int64_t k_width, v_width, slots, capacity;
    int heads, d, blocks;  // blocks: of the table, per sequence
};

// Warp (block of a row's 32 channels), b, 0 for keys and 1 for values. A place outside the cache is
// not written. A scale whose values are not finite is NaN.
template <class X>
__global__ void __launch_bounds__(kQ8Threads)
    append_q8_0_kernel(Q8Args args, const X* k, const X* v) {
    pdl_trigger();
    const int b = blockIdx.y, start = args.query_start[b], n = args.query_start[b + 1] - start;
    const int per_row = args.heads * args.d / BlockQ8_0::kValues;
    const int64_t i = int64_t{blockIdx.x} * kQ8Warps + threadIdx.x / 32;
    const int64_t j = i / per_row, lane = threadIdx.x % 32;
    const int64_t p = args.length[b] - n + j, place = p % args.capacity;
    const int64_t slot = slot_of(args, b, p);
    pdl_wait();
    if (j >= n || slot < 0) return;
    const bool is_value = blockIdx.z == 1;
    const int64_t c = i % per_row * BlockQ8_0::kValues, h = c / args.d;
    const X* from = is_value ? v + (start + j) * args.v_width : k + (start + j) * args.k_width;
    const float x = to_f32(from[c + lane]);
    float largest = fabsf(x), nothing = x * 0.0f;  // NaN if x is not finite
    for (int step = 16; step > 0; step /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, step));
        nothing += __shfl_xor_sync(0xffffffff, nothing, step);
    }
    const float inverse = largest > 1e-30f ? 127.0f / largest : 0.0f;
    const int64_t row = (slot * args.heads + h) * args.capacity + place;
    uint8_t* to = (is_value ? args.values : args.keys) +
                  (row * args.d + c % args.d) / BlockQ8_0::kValues * BlockQ8_0::kBytes;
    const bool finite = nothing == 0.0f;
    reinterpret_cast<int8_t*>(to)[2 + lane] =
        finite ? static_cast<int8_t>(rintf(x * inverse)) : int8_t{0};
    if (lane == 0)
        *reinterpret_cast<__half*>(to) = __float2half_rn(finite ? largest / 127.0f : NAN);
}

// Thread: eight values of a row.
template <class To>
__global__ void __launch_bounds__(kQ8Threads)
    dequantize_cache_kernel(To* to, const void* cache, int64_t rows, int64_t length,
                            int64_t capacity, int d) {
    const int64_t packs = rows * length * d / 8;
    for (int64_t i = int64_t{blockIdx.x} * kQ8Threads + threadIdx.x; i < packs;
         i += int64_t{gridDim.x} * kQ8Threads) {
        const int64_t at = i * 8, row = at / (length * d), in_row = at % (length * d);
        CachePack<BlockQ8_0> from;
        from.load(cache, row * capacity * d + in_row);
        store_pack(to + at, convert_pack<To>(from.values()));
    }
}

}  // namespace

void append_q8_0(Context& ctx, Tensor keys, Tensor values, const Columns& k, const Columns& v,
                 const BatchLayout& rows) {
    const int64_t heads = keys.dim(1), d = keys.dim(3);
    const Q8Args args{static_cast<uint8_t*>(keys.data),
                      static_cast<uint8_t*>(values.data),
                      rows.query_start.as<int32_t>(),
                      rows.block_table.as<int32_t>(),
                      rows.length.as<int32_t>(),
                      k.rows.dim(-1),
                      v.rows.dim(-1),
                      keys.dim(0),
                      keys.dim(2),
                      static_cast<int>(heads),
                      static_cast<int>(d),
                      static_cast<int>(rows.blocks())};
    const int64_t warps = rows.max_queries * heads * d / BlockQ8_0::kValues;
    const dim3 grid(static_cast<unsigned>(ceil_div(warps, kQ8Warps)),
                    static_cast<unsigned>(rows.sequences()), 2);
    with_float_type(k.rows.dtype, [&](auto value) {
        using X = decltype(value);
        const auto at = [](const Columns& columns) {
            return static_cast<const X*>(columns.rows.data) + columns.first;
        };
        pdl_launch(ctx, append_q8_0_kernel<X>, grid, kQ8Threads, 0, args, at(k), at(v));
    });
}

void dequantize_cache(Context& ctx, Tensor to, Tensor cache) {
    const int64_t rows = cache.dim(0) * cache.dim(1), length = to.dim(2), d = cache.dim(3);
    const int64_t blocks = std::min<int64_t>(ceil_div(rows * length * d / 8, kQ8Threads), 132 * 16);
    with_float_type(to.dtype, [&](auto value) {
        using To = decltype(value);
        dequantize_cache_kernel<To>
            <<<static_cast<unsigned>(blocks), kQ8Threads, 0, stream_of(ctx)>>>(
                static_cast<To*>(to.data), cache.data, rows, length, cache.dim(2),
                static_cast<int>(d));
    });
    CUDA_CHECK(cudaGetLastError());
}

}  // namespace hark::cuda
