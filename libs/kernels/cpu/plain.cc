// The loops for any processor: four floats at a time in the compiler's own vectors.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/half.h"
#include "kernels/cpu/cpu.h"
#include "kernels/quant/block_types.h"

namespace hark {
namespace {

struct Vec {
    using F = float __attribute__((vector_size(16)));
    using I = int32_t __attribute__((vector_size(16)));
    static constexpr int kIntegers = 4;
    static constexpr int kWidth = 4;
    static constexpr int kRowsAtOnce = 2;  // of x
    static constexpr int kWeightRows = 2;  // with them: 8 of 16 registers hold sums
    static constexpr int kPanelVectors = 2, kPanelRows = 4;

    static F set(float x) { return F{x, x, x, x}; }
    static F load(const float* p) {
        F x;
        __builtin_memcpy(&x, p, sizeof x);
        return x;
    }
    static F load(const f16_t* p) {
        return F{to_float(p[0]), to_float(p[1]), to_float(p[2]), to_float(p[3])};
    }
    static F load(const bf16_t* p) {
        return F{to_float(p[0]), to_float(p[1]), to_float(p[2]), to_float(p[3])};
    }
    static F load(const int8_t* p) {
        return F{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]),
                 static_cast<float>(p[3])};
    }
    // Bytes as 32-bit integers, one per lane.
    using Lanes = int32_t __attribute__((vector_size(16)));
    static Lanes lanes(const uint8_t* p) { return Lanes{p[0], p[1], p[2], p[3]}; }
    static Lanes lanes(const int8_t* p) { return Lanes{p[0], p[1], p[2], p[3]}; }
    static F quants(Lanes x) { return __builtin_convertvector(x, F); }
    // Bytes as 16-bit integers; four bits, and the fifth bit times 16, of group g of a block of 32
    // values.
    using Shorts = int16_t __attribute__((vector_size(8)));
    template <class Byte>
    static Shorts shorts(const Byte* p) {
        return Shorts{p[0], p[1], p[2], p[3]};
    }
    static void store(int16_t* p, Shorts x) { __builtin_memcpy(p, &x, sizeof x); }
    static Shorts four_bits(const uint8_t* p, int g, int j) {
        return shorts(p + j) >> static_cast<int16_t>(g * 4) & int16_t{15};
    }
    static Shorts fifth_bit(const uint8_t* p, int g, int j) {
        const int bits = p[g * 2 + j / 8] >> j % 8;
        const Shorts places = {1, 2, 4, 8};
        return Shorts(((Shorts{} + static_cast<int16_t>(bits)) & places) == places) & int16_t{16};
    }
    // The numbers in places x, from 0 to 15, of the table of bytes with their sign {lower, upper}.
    template <class Places>
    static Places lookup(uint64_t lower, uint64_t upper, Places x) {
        for (int i = 0; i < 4; ++i)
            x[i] = static_cast<int8_t>((x[i] < 8 ? lower : upper) >> x[i] % 8 * 8);
        return x;
    }
    static void store(float* p, F x) { __builtin_memcpy(p, &x, sizeof x); }
    static void store(f16_t* p, F x) {
        for (int i = 0; i < 4; ++i) p[i] = to_f16(x[i]);
    }
    static void store(bf16_t* p, F x) {
        for (int i = 0; i < 4; ++i) p[i] = to_bf16(x[i]);
    }
    static F fma(F a, F b, F c) { return a * b + c; }
    static float fma(float a, float b, float c) { return a * b + c; }
    static F add(F a, F b) { return a + b; }
    static F sub(F a, F b) { return a - b; }
    static F mul(F a, F b) { return a * b; }
    static F div(F a, F b) { return a / b; }
    static F reciprocal(F x) { return 1.0f / x; }
    static F sqrt(F x) {
        return F{std::sqrt(x[0]), std::sqrt(x[1]), std::sqrt(x[2]), std::sqrt(x[3])};
    }
    static F min(F a, F b) { return a < b ? a : b; }
    static F max(F a, F b) { return a > b ? a : b; }
    static F round(F x) {
        return F{std::nearbyintf(x[0]), std::nearbyintf(x[1]), std::nearbyintf(x[2]),
                 std::nearbyintf(x[3])};
    }
    static F where_below(F x, F limit, F below, F other) { return x < limit ? below : other; }
    static F power_of_2(F n) {
        const I bits = (__builtin_convertvector(n, I) + 127) << 23;
        F x;
        __builtin_memcpy(&x, &bits, sizeof x);
        return x;
    }
    static float first(F x) { return x[0]; }
    static I zero_integers() { return I{}; }
    static I integers(Shorts x) { return __builtin_convertvector(x, I); }
    static I load_integers(const int16_t* p) {
        int16_t x __attribute__((vector_size(8)));
        __builtin_memcpy(&x, p, sizeof x);
        return __builtin_convertvector(x, I);
    }
    static I load_integers(const int8_t* p) { return I{p[0], p[1], p[2], p[3]}; }
    static I multiply_add(I a, I b, I sums) { return sums + a * b; }
    static F to_floats(I x) { return __builtin_convertvector(x, F); }
    // of(i) in the lanes of the i-th group of `shared` 16-bit integers.
    template <int shared, class Of>
    static F scales(const Of& of) {
        return set(of(0));
    }
    // {a0, b0, a1, b1, ...}: the lower half of it, and the upper one.
    static void interleave(F a, F b, F& lower, F& upper) {
        lower = F{a[0], b[0], a[1], b[1]};
        upper = F{a[2], b[2], a[3], b[3]};
    }
    static int32_t total(I x) { return x[0] + x[1] + x[2] + x[3]; }
    static float total(F x) { return (x[0] + x[2]) + (x[1] + x[3]); }
    static float maximum(F x) {
        const float a = x[0] > x[1] ? x[0] : x[1], b = x[2] > x[3] ? x[2] : x[3];
        return a > b ? a : b;
    }
};

constexpr const char* kKernelsName = "plain";

// Eight integers times `unit`.
template <class Integer>
static void store_eight(float* to, const Integer* from, float unit) {
    for (int i = 0; i < 8; ++i) to[i] = static_cast<float>(from[i]) * unit;
}

#include "kernels/cpu/table.h"

}  // namespace

extern const CpuKernels kPlainKernels;
const CpuKernels kPlainKernels = kTable;

}  // namespace hark
