#include "nn/finite_weights.h"

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/finite.h"
#include "kernels/quant/block_types.h"

namespace hark {
namespace {

void require_finite(bool finite) {
    require(finite, "weights: found a value that is not a finite number");
}

// No exponent has all bits set.
template <class Bits>
void check_bits(const std::byte* from, int64_t n, Bits exponent) {
    Bits found = 0;
    for (int64_t i = 0; i < n; ++i) {
        Bits value;
        std::memcpy(&value, from + i * int64_t{sizeof(Bits)}, sizeof(Bits));
        found = static_cast<Bits>(found | ((value & exponent) == exponent));
    }
    require_finite(found == 0);
}

// Quants are integers of eight bits, and all scales of a block come from one number: where values of
// the first group's scale are finite, all are. mxfp4's scales reach 2^127.
void check_blocks(const std::byte* from, Dtype dtype, int64_t n) {
    with_block_type(dtype, [&](auto type) {
        using Block = decltype(type);
        const auto* block = reinterpret_cast<const uint8_t*>(from);
        bool finite = true;
        for (int64_t i = 0; i < n; i += Block::kValues, block += Block::kBytes)
            finite &= std::isfinite(Block::scale(block, 0) * 128.0f) &&
                      (!Block::kHasMin || std::isfinite(Block::min(block, 0)));
        require_finite(finite);
    });
}

}  // namespace

void check_finite(std::span<const float> row) { require_finite(all_finite(row)); }

void check_finite(const std::byte* from, Dtype dtype, int64_t n) {
    if (is_quantized(dtype)) return check_blocks(from, dtype, n);
    if (dtype == Dtype::f16) return check_bits<uint16_t>(from, n, 0x7c00);
    if (dtype == Dtype::bf16) return check_bits<uint16_t>(from, n, 0x7f80);
    check_bits<uint32_t>(from, n, 0x7f800000);
}

}  // namespace hark
