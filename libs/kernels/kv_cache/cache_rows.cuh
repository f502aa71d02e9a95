// Values of a cache in registers: of a float type, or dequantised from blocks of q8_0.
#pragma once

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/quant/quantized.cuh"

namespace hark::cuda {

// Calls f with a value of the CUDA type of a cache's dtype: a float type, or the structure of
// q8_0's blocks. Rows are whole blocks.
template <class F>
void with_cache_type(Dtype dtype, F&& f) {
    if (dtype == Dtype::q8_0) return f(BlockQ8_0{});
    with_float_type(dtype, f);
}

// The slot of position p of sequence b, of the arguments of a kernel that writes to a cache; below
// 0 if the sequence's table or the cache lacks it.
template <class Args>
__device__ int64_t slot_of(const Args& args, int b, int64_t p) {
    const int64_t block = p / args.capacity;
    if (p < 0 || block >= args.blocks) return -1;
    const int64_t slot = args.slot[b * args.blocks + block];
    return slot < args.slots ? slot : -1;
}

// Eight neighbours, from a multiple of eight on. Those that are not loaded are zeros.
template <class T>
struct CachePack {
    // As whole words: 16-bit values would be set to zero and moved one by one.
    uint4 words[sizeof(T) / 2]{};

    __device__ void load(const void* cache, int64_t at) {
        const uint4* from = reinterpret_cast<const uint4*>(static_cast<const T*>(cache) + at);
#pragma unroll
        for (size_t i = 0; i < sizeof(T) / 2; ++i) words[i] = from[i];
    }
    __device__ Pack<float, 8> values() const {
        Pack<float, 8> values;
        const T* all = reinterpret_cast<const T*>(words);
#pragma unroll
        for (int c = 0; c < 8; ++c) values.values[c] = to_f32(all[c]);
        return values;
    }
};
template <>
struct CachePack<BlockQ8_0> {
    uint32_t quants[2]{};
    float scale = 0;

    __device__ void load(const void* cache, int64_t at) {
        const uint8_t* block =
            static_cast<const uint8_t*>(cache) + at / BlockQ8_0::kValues * BlockQ8_0::kBytes;
        const int first = static_cast<int>(at % BlockQ8_0::kValues);
        scale = BlockQ8_0::scale(block, 0);
        for (int i = 0; i < 2; ++i) quants[i] = load_quad<BlockQ8_0>(block, first + 4 * i).word;
    }
    __device__ Pack<float, 8> values() const {
        Pack<float, 8> values;
        for (int i = 0; i < 2; ++i) {
            uint32_t pairs[2];
            int8_to_pairs(quants[i], pairs, __half());
            for (int c = 0; c < 4; ++c) {
                const __half2 pair = reinterpret_cast<const __half2&>(pairs[c / 2]);
                values.values[4 * i + c] = scale * __half2float(c % 2 == 0 ? pair.x : pair.y);
            }
        }
        return values;
    }
};

// Value `at` of a cache.
template <class T>
__device__ float cache_value(const void* cache, int64_t at) {
    return to_f32(static_cast<const T*>(cache)[at]);
}
template <>
__device__ inline float cache_value<BlockQ8_0>(const void* cache, int64_t at) {
    const uint8_t* block =
        static_cast<const uint8_t*>(cache) + at / BlockQ8_0::kValues * BlockQ8_0::kBytes;
    return BlockQ8_0::scale(block, 0) *
           to_f32(static_cast<int8_t>(block[2 + at % BlockQ8_0::kValues]));
}

// Requests the memory of value `at` of a cache; 128 bytes have kCacheLine values at least.
template <class T>
constexpr int kCacheLine = 128 / sizeof(T);
template <>
inline constexpr int kCacheLine<BlockQ8_0> = 96;

template <class T>
__device__ void prefetch_cache(const void* cache, int64_t at) {
    prefetch(static_cast<const T*>(cache) + at);
}
template <>
__device__ inline void prefetch_cache<BlockQ8_0>(const void* cache, int64_t at) {
    prefetch(static_cast<const uint8_t*>(cache) + at / BlockQ8_0::kValues * BlockQ8_0::kBytes);
}

// append_cache for a cache of q8_0 whose keys and values are columns of two tensors of one type.
void append_q8_0(Context& ctx, Tensor keys, Tensor values, const Columns& k, const Columns& v,
                 const BatchLayout& rows);

// to (slots, H, length, D) of a float type = the first `length` positions of a cache of q8_0.
void dequantize_cache(Context& ctx, Tensor to, Tensor cache);

}  // namespace hark::cuda
