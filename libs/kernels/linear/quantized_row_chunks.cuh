// A chunk of 16 quantised rows times one row of x, for quantized_row_tma.cuh. The
// chunks are in shared memory, each row's aligned to 16 bytes.
//
// As in quantized_one_row.cuh a column of mma.m16n8k16 has x of one share, and quants are the bits
// of an f16 of 2^-24 times their value. Here pairs of quants are masked, not permuted, out of words
// as large as the format allows: x gets the order of the words instead.
#pragma once

#include "kernels/linear/quantized_chunk.cuh"

namespace hark::cuda::quantized_row {

constexpr uint32_t kOnes = 0x00010001;  // two times 2^-24: sums of x are products with it

// 16 f16 of x as the second operands of four products: of four neighbours the first and the third,
// then the second and the fourth.
struct InputsOfRow {
    uint32_t pairs[4][2] = {};

    __device__ void load(const __half* x) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint4 from = reinterpret_cast<const uint4*>(x)[i];
            take(pairs[2 * i], from.x, from.y);
            take(pairs[2 * i + 1], from.z, from.w);
        }
    }
    static __device__ void take(uint32_t (&to)[2], uint32_t first, uint32_t second) {
        to[0] = __byte_perm(first, second, 0x5410);
        to[1] = __byte_perm(first, second, 0x7632);
    }
    // sums += 2^-24 times the sum of each column's values.
    __device__ void add_to(float (&sums)[4]) const {
#pragma unroll
        for (const auto& two : pairs)
            mma(__half(), sums, kOnes, kOnes, kOnes, kOnes, two[0], two[1]);
    }
};

__device__ inline uint4 load_16_bytes(const uint8_t* from) {
    return *reinterpret_cast<const uint4*>(from);
}
__device__ inline uint32_t word_of(const uint4& four, int i) {
    return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}
// Two f16 that are integers times 2^-24.
__device__ inline float2 small_integers(uint32_t pair) {
    return __half22float2(reinterpret_cast<const __half2&>(pair));
}

// The sums of 16 rows of w of one slice, chunk by chunk. Lane 4 g + t reads the chunks of rows g
// and g + 8 and ends with sums of theirs. kPitch: bytes from a row's chunk to the next row's;
// kStages: chunks in flight per warp. Those of 128 columns are of whole rows.
template <class Block, int Columns = 256>
class RowOfChunks;

// 64 bytes have 128 values in four shares, the lower and the upper halves of 32 bytes. Lanes with t
// below 2 read the first 32 bytes, the others the next: so a product has values of two shares,
// which two columns of x, zero for the other lanes, tell apart. Columns 2 t and 2 t + 1 of the four
// chains of products are t's.
template <>
class RowOfChunks<BlockQ4K> {
  public:
    static constexpr int kColumns = 256, kPitch = BlockQ4K::kBytes, kStages = 2;

    // x: from the chunk's first column on.
    __device__ void multiply(const uint8_t* low, const uint8_t* high, const __half* x) {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        InputsOfRow inputs;
        if (g % 2 == t / 2) inputs.load(x + (g / 4 * 4 + g / 2 % 2 + g % 2 * 2) * 32 + t % 2 * 16);
        float chains[4][4] = {}, of_x[4] = {};
        inputs.add_to(of_x);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int at = BlockQ4K::kLow + 64 * half + 16 * t;
            const uint4 lows = load_16_bytes(low + at), highs = load_16_bytes(high + at);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const uint32_t a = word_of(lows, i), b = word_of(highs, i);
                const auto& [first, second] = inputs.pairs[i];
                mma(__half(), chains[2 * half], a & kLower, b & kLower, a >> 8 & kLower,
                    b >> 8 & kLower, first, second);
                mma(__half(), chains[2 * half + 1], a & kUpper, b & kUpper, a >> 8 & kUpper,
                    b >> 8 & kUpper, first, second);
            }
        }
        float own[4];
#pragma unroll
        for (int v = 0; v < 4; ++v) {
            const float even = t < 2 ? chains[0][v] : chains[2][v];
            const float odd = t < 2 ? chains[1][v] : chains[3][v];
            own[v] = t % 2 == 0 ? even : odd;
        }
        add(0, low, own[0], own[1], of_x);
        add(1, high, own[2], own[3], of_x);
    }
    __device__ float sum(int half) const {
        const float unit = threadIdx.x % 2 == 0 ? 0x1p48f : 0x1p44f;  // upper halves are 16 times
        return sums_[half] * unit - mins_[half] * 0x1p48f;
    }

  private:
    static constexpr uint32_t kLower = 0x000f000f, kUpper = 0x00f000f0;

    __device__ void add(int half, const uint8_t* block, float first, float second,
                        const float (&of_x)[4]) {
        const int t = threadIdx.x % 4;
        const uint4 head = load_16_bytes(block);
        // Bytes 0 and 2 are of the lane's two shares.
        const uint32_t a = head.y >> t % 2 * 8, b = head.z >> t % 2 * 8, c = head.w >> t % 2 * 8;
        uint32_t scales = a & 0x003f003f, mins = b & 0x003f003f;
        if (t >= 2) {
            scales = (c & kLower) | (a >> 2 & 0x00300030);
            mins = (c >> 4 & kLower) | (b >> 2 & 0x00300030);
        }
        const float2 by = small_integers(scales), min = small_integers(mins);
        const float2 units = __half22float2(reinterpret_cast<const __half2&>(head.x));
        sums_[half] = fmaf(units.x, fmaf(by.y, second, by.x * first), sums_[half]);
        mins_[half] = fmaf(units.y, fmaf(min.y, of_x[1], min.x * of_x[0]), mins_[half]);
    }

    float sums_[2] = {}, mins_[2] = {};
};

// 64 bytes have the lower bits of 128 values in eight shares: product q has those of share q of
// half a block, in column q. Every other block begins in the middle of a word.
template <>
class RowOfChunks<BlockQ6K> {
  public:
    static constexpr int kColumns = 256, kPitch = 240, kStages = 3;

    __device__ void multiply(const uint8_t* low, const uint8_t* high, const __half* x) {
        float parts[2] = {};
#pragma unroll
        for (int half = 0; half < 2; ++half) multiply_half(parts, half, low, high, x + 128 * half);
        sums_[0] = fmaf(half_at(low + 208), parts[0], sums_[0]);
        sums_[1] = fmaf(half_at(high + 208), parts[1], sums_[1]);
    }
    __device__ float sum(int half) const {
        return sums_[half] * (threadIdx.x % 4 < 2 ? 0x1p24f : 0x1p20f);  // upper: 16 times
    }

  private:
    __device__ static void multiply_half(float (&parts)[2], int half, const uint8_t* low,
                                         const uint8_t* high, const __half* x) {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        uint32_t inputs[2];
        const uint2 from = *reinterpret_cast<const uint2*>(x + 16 * g + 4 * t);
        InputsOfRow::take(inputs, from.x, from.y);
        float of_x[4] = {}, own[4] = {};
        mma(__half(), of_x, kOnes, kOnes, kOnes, kOnes, inputs[0], inputs[1]);
        uint32_t low_bits[2], high_bits[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            low_bits[i] = word_at(low, 128 + 32 * half + 16 * i + 4 * t);
            high_bits[i] = word_at(high, 128 + 32 * half + 16 * i + 4 * t);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            uint32_t a[2][2], b[2][2];  // lower and upper halves
            const int at = 64 * half + 16 * i + 4 * t;
            pairs_of(word_at(low, at), low_bits[i % 2], i < 2 ? 4 : 2, a);
            pairs_of(word_at(high, at), high_bits[i % 2], i < 2 ? 4 : 2, b);
#pragma unroll
            for (int upper = 0; upper < 2; ++upper) {
                float products[4] = {};
                mma(__half(), products, a[upper][0], b[upper][0], a[upper][1], b[upper][1],
                    inputs[0], inputs[1]);
                if (t != 2 * upper + i / 2) continue;
                own[i % 2] = products[i % 2];
                own[2 + i % 2] = products[2 + i % 2];
            }
        }
        const float offset = t < 2 ? -32.0f : -512.0f;
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const uint8_t* scales = (row == 0 ? low : high) + 192 + 8 * half + 2 * t;
            const uint32_t two = *reinterpret_cast<const uint16_t*>(scales);
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const auto by = static_cast<float>(static_cast<int8_t>(two >> 8 * i));
                parts[row] = fmaf(by, fmaf(offset, of_x[i], own[2 * row + i]), parts[row]);
            }
        }
    }
    // Four bytes of a row, aligned to 2, from two words.
    static __device__ uint32_t word_at(const uint8_t* row, int at) {
        const auto address = reinterpret_cast<uintptr_t>(row);
        const auto* words = reinterpret_cast<const uint32_t*>(row - address % 4 + at);
        return __byte_perm(words[0], words[1], address % 4 == 0 ? 0x3210 : 0x5432);
    }
    // The values of four bytes' lower halves, of bytes 0 and 2, 1 and 3; then 16 times those of the
    // upper ones. The lower ones' fifth bits are `shift` places further on in `bits`.
    static __device__ void pairs_of(uint32_t four, uint32_t bits, int shift,
                                    uint32_t (&pairs)[2][2]) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint32_t own = four >> 8 * i;
            const uint32_t upper = i == 0 ? bits << shift : bits >> (8 - shift);
            pairs[0][i] = (own & 0x000f000f) | (upper & 0x00300030);
            pairs[1][i] = (own & 0x00f000f0) | (upper & 0x03000300);
        }
    }

    float sums_[2] = {};
};

// A chunk is eight blocks, a share each. A lane has eight neighbours of each, which in every other
// block begin in the middle of a word.
template <>
class RowOfChunks<BlockQ8_0> {
  public:
    static constexpr int kColumns = 256, kPitch = 8 * BlockQ8_0::kBytes, kStages = 3;

    __device__ void multiply(const uint8_t* low, const uint8_t* high, const __half* x) {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const uint4 from = *reinterpret_cast<const uint4*>(x + 32 * g + 8 * t);
        const uint32_t inputs[4] = {
            from.x, __byte_perm(from.y, from.z, g % 2 == 0 ? 0x5410 : 0x3210),
            __byte_perm(from.y, from.z, g % 2 == 0 ? 0x7632 : 0x7654), from.w};
        float of_x[4] = {}, own[4] = {};
        for (int step = 0; step < 4; step += 2)
            mma(__half(), of_x, kOnes, kOnes, kOnes, kOnes, inputs[step], inputs[step + 1]);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            uint32_t a[4], b[4];
            pairs_of(low, i, a);
            pairs_of(high, i, b);
            float products[4] = {};
            for (int step = 0; step < 4; step += 2)
                mma(__half(), products, a[step], b[step], a[step + 1], b[step + 1], inputs[step],
                    inputs[step + 1]);
            if (t != i / 2) continue;
            own[i % 2] = products[i % 2];
            own[2 + i % 2] = products[2 + i % 2];
        }
#pragma unroll
        for (int v = 0; v < 4; ++v) {
            const uint8_t* block = (v < 2 ? low : high) + (2 * t + v % 2) * BlockQ8_0::kBytes;
            const float value = fmaf(-128.0f, of_x[v % 2], own[v]);
            sums_[v / 2] = fmaf(half_at(block), value, sums_[v / 2]);
        }
    }
    __device__ float sum(int half) const { return sums_[half] * 0x1p24f; }

  private:
    // The lane's values of block i, 128 larger, as four pairs: 0 and 1; 2 and 4, or 2 and 3; 3 and
    // 5, or 4 and 5; 6 and 7.
    static __device__ void pairs_of(const uint8_t* row, int i, uint32_t (&pairs)[4]) {
        const uint8_t* quants = row + i * BlockQ8_0::kBytes + 2 + threadIdx.x % 4 * 8;
        const auto word = [&](int at) {
            return *reinterpret_cast<const uint32_t*>(quants + at) ^ 0x80808080;
        };
        if (i % 2 == 0) {
            const uint32_t first = word(-2), second = word(2), third = word(6);
            pairs[0] = __byte_perm(first, 0, 0x4342);
            pairs[1] = second & 0x00ff00ff;
            pairs[2] = second >> 8 & 0x00ff00ff;
            pairs[3] = __byte_perm(third, 0, 0x4140);
        } else {
            const uint32_t first = word(0), second = word(4);
            pairs[0] = __byte_perm(first, 0, 0x4140);
            pairs[1] = __byte_perm(first, 0, 0x4342);
            pairs[2] = __byte_perm(second, 0, 0x4140);
            pairs[3] = __byte_perm(second, 0, 0x4342);
        }
    }

    float sums_[2] = {};
};

// The sums of four blocks of 32 values. Column 2 i + j of a product has x of half j of block i: a
// lane's columns are block t.
template <class Quants>
class RowOfHalfBlocks {
  public:
    static constexpr int kColumns = 128;

    // low, high: aligned to 4 bytes.
    __device__ void multiply(const uint8_t* low, const uint8_t* high, const __half* x) {
        constexpr int kBytes = Quants::kBytes;
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        uint32_t inputs[2];
        const uint2 from = *reinterpret_cast<const uint2*>(x + 16 * g + 4 * t);
        Quants::take(inputs, from);
        float of_x[4] = {}, own[4] = {};
        mma(__half(), of_x, kOnes, kOnes, kOnes, kOnes, inputs[0], inputs[1]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            uint32_t a[2][2], b[2][2];  // of both halves
            Quants::load(low + i * kBytes, i % 2 * kBytes % 4, a);
            Quants::load(high + i * kBytes, i % 2 * kBytes % 4, b);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float products[4] = {};
                mma(__half(), products, a[half][0], b[half][0], a[half][1], b[half][1], inputs[0],
                    inputs[1]);
                if (t != i) continue;
                own[half] = products[half];
                own[2 + half] = products[2 + half];
            }
        }
        const float offset = Quants::kOffset * (of_x[0] + of_x[1]);
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const float value = own[2 * row] + own[2 * row + 1] * Quants::kOfUpper - offset;
            const float by = half_at((row == 0 ? low : high) + t * kBytes);
            sums_[row] = fmaf(by, value, sums_[row]);
        }
    }
    __device__ float sum(int half) const { return sums_[half] * 0x1p24f; }

  private:
    float sums_[2] = {};
};

// Four bytes, the first of which is `place` (0 or 2) bytes after a multiple of 4.
__device__ inline uint32_t word_after(const uint8_t* at, int place) {
    const auto* words = reinterpret_cast<const uint32_t*>(at - place);
    return place == 0 ? words[0] : __byte_perm(words[0], words[1], 0x5432);
}

// A lane's four values of each half of a block as two pairs, kOffset larger; the upper half's are
// divided by kOfUpper. take: x in the order of the pairs. place: as word_after's, of the block.
struct HalvesOfQ8_0 : BlockQ8_0 {
    static constexpr float kOffset = 128, kOfUpper = 1;

    static __device__ void take(uint32_t (&inputs)[2], uint2 x) {
        inputs[0] = x.x;
        inputs[1] = x.y;
    }
    static __device__ void load(const uint8_t* block, int place, uint32_t (&pairs)[2][2]) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const uint8_t* from = block + 2 + 16 * half + threadIdx.x % 4 * 4;
            const uint32_t four = word_after(from, (place + 2) % 4) ^ 0x80808080;
            pairs[half][0] = __byte_perm(four, 0, 0x4140);
            pairs[half][1] = __byte_perm(four, 0, 0x4342);
        }
    }
};

struct HalvesOfQ5_0 : BlockQ5_0 {
    static constexpr float kOffset = 16, kOfUpper = 0x1p-4f;  // upper halves are 16 times

    static __device__ void take(uint32_t (&inputs)[2], uint2 x) {
        InputsOfRow::take(inputs, x.x, x.y);
    }
    static __device__ void load(const uint8_t* block, int place, uint32_t (&pairs)[2][2]) {
        const int t = threadIdx.x % 4;
        const uint32_t four = word_after(block + kLow + 4 * t, (place + 2) % 4);
        const uint32_t bits = word_after(block + kHigh, (place + 2) % 4) >> 4 * t;
        // Bits 0 and 2 of four to the fifth bits of the lower and the upper half of a word; then
        // those of the values in upper halves of bytes, which are four places further on.
        const uint32_t low = (bits & 15) * 0x00040010, high = (bits >> 16 & 15) * 0x00400100;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            pairs[0][i] = (four >> 8 * i & 0x000f000f) | (low >> i & 0x00100010);
            pairs[1][i] = (four >> 8 * i & 0x00f000f0) | (high >> i & 0x01000100);
        }
    }
};

template <>
class RowOfChunks<BlockQ8_0, 128> : public RowOfHalfBlocks<HalvesOfQ8_0> {};
template <>
class RowOfChunks<BlockQ5_0, 128> : public RowOfHalfBlocks<HalvesOfQ5_0> {};

}  // namespace hark::cuda::quantized_row
