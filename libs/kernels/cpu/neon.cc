// The loops for aarch64, every processor of which has Advanced SIMD with FMA and conversions of
// f16.
#include <arm_neon.h>

#include <algorithm>
#include <utility>

#include "kernels/cpu/cpu.h"
#include "kernels/quant/block_types.h"

namespace hark {
namespace {

struct Vec {
    using F = float32x4_t;
    static constexpr int kWidth = 4;
    static constexpr int kRowsAtOnce = 4;  // of x
    static constexpr int kWeightRows = 2;  // with them: 16 of 32 registers hold sums
    static constexpr int kPanelVectors = 4, kPanelRows = 6;

    static F set(float x) { return vdupq_n_f32(x); }
    static F load(const float* p) { return vld1q_f32(p); }
    static F load(const f16_t* p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&p->bits))); }
    static F load(const bf16_t* p) {
        return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(&p->bits), 16));
    }
    static F load(const int8_t* p) { return vcvtq_f32_s32(int32x4_t(lanes(p))); }
    // Bytes as 32-bit integers, one per lane.
    using Lanes = int32_t __attribute__((vector_size(16)));
    static Lanes lanes(const uint8_t* p) {
        return Lanes(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four_bytes(p))))));
    }
    static Lanes lanes(const int8_t* p) {
        return Lanes(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(four_bytes(p))))));
    }
    static F quants(Lanes x) { return vcvtq_f32_s32(int32x4_t(x)); }
    // Bytes as 16-bit integers; four bits, and the fifth bit times 16, of group g of a block of 32
    // values.
    using Shorts = int16_t __attribute__((vector_size(16)));
    static Shorts shorts(const uint8_t* p) { return Shorts(vmovl_u8(vld1_u8(p))); }
    static Shorts shorts(const int8_t* p) { return Shorts(vmovl_s8(vld1_s8(p))); }
    static Shorts shorts(const int16_t* p) { return Shorts(vld1q_s16(p)); }
    static void store(int16_t* p, Shorts x) { vst1q_s16(p, int16x8_t(x)); }
    static Shorts four_bits(const uint8_t* p, int g, int j) {
        return shorts(p + j) >> static_cast<int16_t>(g * 4) & int16_t{15};
    }
    static Shorts fifth_bit(const uint8_t* p, int g, int j) {
        const Shorts places = {1, 2, 4, 8, 16, 32, 64, 128};
        const auto bits = vdupq_n_s16(p[g * 2 + j / 8]);
        return Shorts(vtstq_s16(bits, int16x8_t(places))) & int16_t{16};
    }
    // The numbers in places x, from 0 to 15, of the table of bytes with their sign {lower, upper}.
    template <class Places>
    static Places lookup(uint64_t lower, uint64_t upper, Places x) {
        const int8x16_t table = vcombine_s8(vcreate_s8(lower), vcreate_s8(upper));
        constexpr int kShift = sizeof(x[0]) * 8 - 8;
        return Places(vqtbl1q_s8(table, uint8x16_t(x))) << kShift >> kShift;
    }
    static void store(float* p, F x) { vst1q_f32(p, x); }
    static void store(f16_t* p, F x) { vst1_u16(&p->bits, vreinterpret_u16_f16(vcvt_f16_f32(x))); }
    static void store(bf16_t* p, F x) {
        const uint32x4_t bits = vreinterpretq_u32_f32(x);
        const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
        const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
        const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));  // NaN stays NaN
        const uint32x4_t is_number = vceqq_f32(x, x);
        vst1_u16(&p->bits, vshrn_n_u32(vbslq_u32(is_number, rounded, quiet), 16));
    }
    static F fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
    static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
    static F add(F a, F b) { return vaddq_f32(a, b); }
    static F sub(F a, F b) { return vsubq_f32(a, b); }
    static F mul(F a, F b) { return vmulq_f32(a, b); }
    static F div(F a, F b) { return vdivq_f32(a, b); }
    static F reciprocal(F x) { return div(set(1.0f), x); }
    static F sqrt(F x) { return vsqrtq_f32(x); }
    static F min(F a, F b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
    static F max(F a, F b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
    static F round(F x) { return vrndnq_f32(x); }
    static F where_below(F x, F limit, F below, F other) {
        return vbslq_f32(vcltq_f32(x, limit), below, other);
    }
    static F power_of_2(F n) {
        const int32x4_t exponent = vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127));
        return vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23));
    }
    // Eight 16-bit integers, or four 32-bit sums of their products.
    using I = int16x8_t;
    static constexpr int kIntegers = 8;
    static I zero_integers() { return vdupq_n_s16(0); }
    static I integers(Shorts x) { return I(x); }
    static I load_integers(const int16_t* p) { return vld1q_s16(p); }
    static I load_integers(const int8_t* p) { return vmovl_s8(vld1_s8(p)); }
    static I multiply_add(I a, I b, I sums) {
        int32x4_t sum = vreinterpretq_s32_s16(sums);
        sum = vmlal_s16(sum, vget_low_s16(a), vget_low_s16(b));
        return vreinterpretq_s16_s32(vmlal_high_s16(sum, a, b));
    }
    static F to_floats(I x) { return vcvtq_f32_s32(vreinterpretq_s32_s16(x)); }
    // of(i) in the lanes of the i-th group of `shared` 16-bit integers.
    template <int shared, class Of>
    static F scales(const Of& of) {
        return set(of(0));
    }
    // {a0, b0, a1, b1, ...}: the lower half of it, and the upper one.
    static void interleave(F a, F b, F& lower, F& upper) {
        lower = vzip1q_f32(a, b);
        upper = vzip2q_f32(a, b);
    }
    static int32_t total(I x) { return vaddvq_s32(vreinterpretq_s32_s16(x)); }
    static float first(F x) { return vgetq_lane_f32(x, 0); }
    static float total(F x) { return (x[0] + x[2]) + (x[1] + x[3]); }
    static float maximum(F x) {
        const float a = x[0] > x[1] ? x[0] : x[1], b = x[2] > x[3] ? x[2] : x[3];
        return a > b ? a : b;
    }

  private:
    template <class Byte>
    static uint64_t four_bytes(const Byte* p) {
        uint32_t bytes;
        __builtin_memcpy(&bytes, p, sizeof bytes);
        return bytes;
    }
};

constexpr const char* kKernelsName = "neon";

// Eight integers times `unit`.
template <class Integer>
static void store_eight(float* to, const Integer* from, float unit) {
    for (int i = 0; i < 8; i += Vec::kWidth)
        Vec::store(to + i, Vec::mul(Vec::quants(Vec::lanes(from + i)), Vec::set(unit)));
}

#include "kernels/cpu/table.h"

}  // namespace

extern const CpuKernels kNeonKernels;
const CpuKernels kNeonKernels = kTable;

}  // namespace hark
