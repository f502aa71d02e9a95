#include "kernels/quant/blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/half.h"
#include "kernels/cpu/cpu.h"

namespace hark {
namespace {

constexpr int64_t kValues = 32;

// Stores d; the quants are computed with d before its rounding.
void store_half(uint8_t* to, float d, Dtype dtype) {
    require(std::abs(d) < 65520.0f, name_of(dtype), ": found a block whose scale ", d,
            " is not finite or beyond f16");
    const f16_t half = to_f16(d);
    std::memcpy(to, &half.bits, 2);
}

// Stores the quants of a block, four or five bits each, in SmallBlock's layout.
void store_quants(uint8_t* to, const int (&q)[kValues], bool fifth_bit) {
    if (fifth_bit) {
        uint32_t high = 0;
        for (int i = 0; i < kValues; ++i) high |= static_cast<uint32_t>(q[i] >> 4) << i;
        for (int i = 0; i < 4; ++i) *to++ = static_cast<uint8_t>(high >> 8 * i);
    }
    for (int i = 0; i < 16; ++i) to[i] = static_cast<uint8_t>((q[i] & 15) | (q[i + 16] & 15) << 4);
}

// The reciprocal for computing quants; 0 if the scale is so small that it is 0 in f16.
float inverse(float d) { return std::isfinite(1 / d) ? 1 / d : 0.0f; }

// q4_0 and q5_0: the value of the largest magnitude, with its sign, becomes -limit.
void quantize_symmetric(uint8_t* to, const float* x, Dtype dtype, int limit) {
    const float top = *std::max_element(x, x + kValues,
                                        [](float a, float b) { return std::abs(a) < std::abs(b); });
    const float d = top / static_cast<float>(-limit), by = inverse(d);
    store_half(to, d, dtype);
    int q[kValues];
    for (int i = 0; i < kValues; ++i) {
        const float scaled = x[i] * by;
        q[i] = std::min(static_cast<int>(scaled + static_cast<float>(limit) + 0.5f), 2 * limit - 1);
    }
    store_quants(to + 2, q, limit == 16);
}

// q4_1 and q5_1: from the smallest value to the largest one.
void quantize_range(uint8_t* to, const float* x, Dtype dtype, int top) {
    const auto [low, high] = std::minmax_element(x, x + kValues);
    const float d = (*high - *low) / static_cast<float>(top), by = inverse(d);
    store_half(to, d, dtype);
    store_half(to + 2, *low, dtype);
    int q[kValues];
    for (int i = 0; i < kValues; ++i) {
        const float scaled = (x[i] - *low) * by;
        q[i] = std::min(static_cast<int>(scaled + 0.5f), top);
    }
    store_quants(to + 4, q, top == 31);
}

void quantize_q8_0(uint8_t* to, const float* x, Dtype dtype) {
    float top = 0;
    for (int i = 0; i < kValues; ++i) top = std::max(top, std::abs(x[i]));
    const float d = top / 127, by = inverse(d);
    store_half(to, d, dtype);
    for (int i = 0; i < kValues; ++i)
        to[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::round(x[i] * by)));
}

void quantize_block(uint8_t* to, const float* x, Dtype dtype) {
    switch (dtype) {
        case Dtype::q4_0:
            return quantize_symmetric(to, x, dtype, 8);
        case Dtype::q5_0:
            return quantize_symmetric(to, x, dtype, 16);
        case Dtype::q4_1:
            return quantize_range(to, x, dtype, 15);
        case Dtype::q5_1:
            return quantize_range(to, x, dtype, 31);
        default:
            return quantize_q8_0(to, x, dtype);
    }
}

}  // namespace

void dequantize(float* to, const void* blocks, Dtype dtype, int64_t n) {
    require(is_quantized(dtype), "dequantize: expected a dtype of blocks, found ", name_of(dtype));
    row_bytes(dtype, n);  // checks n
    cpu_kernels().dequantize(to, blocks, dtype, n);
}

bool can_quantize(Dtype dtype) { return dtype >= Dtype::q4_0 && dtype <= Dtype::q8_0; }

void quantize(void* blocks, const float* from, Dtype dtype, int64_t n) {
    require(can_quantize(dtype), "quantize: expected q4_0, q4_1, q5_0, q5_1 or q8_0, found ",
            name_of(dtype));
    row_bytes(dtype, n);  // checks n
    auto* to = static_cast<uint8_t*>(blocks);
    for (int64_t i = 0; i < n; i += kValues, to += block_size(dtype).bytes) {
        for (int64_t j = i; j < i + kValues; ++j)
            require(std::isfinite(from[j]), "quantize: found a value that is not a finite number");
        quantize_block(to, from + i, dtype);
    }
}

}  // namespace hark
