// What the structures of quantised blocks share (block_types.h).
#pragma once

#include <cstdint>

#include "core/host_device.h"
#ifdef __CUDACC__
#include <cuda_fp16.h>
#else
#include "core/half.h"
#endif

namespace hark {

// The f16 at two bytes, which on the CPU need not be aligned.
HARK_HOST_DEVICE float half_at(const uint8_t* bytes) {
#ifdef __CUDA_ARCH__
    return __half2float(*reinterpret_cast<const __half*>(bytes));
#else
    const uint16_t bits = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
#ifdef __CUDACC__
    return __half2float(__ushort_as_half(bits));
#else
    return to_float(f16_t{bits});
#endif
#endif
}

// Eight numbers as the bytes of one.
template <int... numbers>
inline constexpr uint64_t kEightBytes = [] {
    uint64_t bytes = 0;
    int shift = 0;
    ((bytes |= uint64_t{numbers & 255} << shift, shift += 8), ...);
    return bytes;
}();
// 16 numbers of eight bits with their sign, for Lanes::lookup.
template <uint64_t lower, uint64_t upper>
struct SixteenLevels {
    static constexpr uint64_t kLower = lower, kUpper = upper;
};

// Single values, for a GPU's threads.
struct ScalarLane {
    static HARK_HOST_DEVICE int bytes(const uint8_t* from) { return *from; }
    static HARK_HOST_DEVICE int signed_bytes(const uint8_t* from) {
        return static_cast<int8_t>(*from);
    }
    // Value j of group g of 32 values in two groups. The lower half of byte l of 16 is value l, the
    // upper half value l + 16.
    static HARK_HOST_DEVICE int four_bits(const uint8_t* from, int g, int j) {
        return from[j] >> g * 4 & 15;
    }
    // Its fifth bit, times 16: bit l of 32 is that of value l.
    static HARK_HOST_DEVICE int fifth_bit(const uint8_t* from, int g, int j) {
        const int bits = from[g * 2] | from[g * 2 + 1] << 8;
        return (bits >> j & 1) << 4;
    }
    // The number in place i of Table, a SixteenLevels.
    template <class Table>
    static HARK_HOST_DEVICE int lookup(int i) {
        return static_cast<int8_t>((i < 8 ? Table::kLower : Table::kUpper) >> i % 8 * 8);
    }
};

// Two bits of value j of 16, from 64 bytes: 32 bytes have 128 values, byte l those of l, l + 32,
// ...
template <class Lanes>
HARK_HOST_DEVICE auto two_bits(const uint8_t* bytes, int g, int j) {
    return Lanes::bytes(bytes + g / 8 * 32 + g % 2 * 16 + j) >> g / 2 % 4 * 2 & 3;
}

}  // namespace hark
