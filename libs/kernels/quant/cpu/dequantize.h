// Values of quantised blocks (kernels/quant/block_types.h), W at a time. The group is a constant,
// so a layout's shifts are too.
#pragma once

struct SimdF32 {
    static inline Vec::Lanes bytes(const uint8_t* from) { return Vec::lanes(from); }
    static inline Vec::Lanes signed_bytes(const uint8_t* from) {
        return Vec::lanes(reinterpret_cast<const int8_t*>(from));
    }
    static inline Vec::Lanes four_bits(const uint8_t* from, int g, int j) {
        return Vec::lanes(from + j) >> g * 4 & 15;
    }
    static inline Vec::Lanes fifth_bit(const uint8_t* from, int g, int j) {
        Vec::Lanes places;
        for (int i = 0; i < W; ++i) places[i] = j + i;
        const int bits = from[g * 2] | from[g * 2 + 1] << 8;
        return ((Vec::Lanes{} + bits) >> places & 1) << 4;
    }
    template <class Table>
    static inline Vec::Lanes lookup(Vec::Lanes x) {
        return Vec::lookup(Table::kLower, Table::kUpper, x);
    }
};

template <class Block, int g>
static inline void dequantize_group(float* to, const uint8_t* block) {
    const F scale = Vec::set(Block::scale(block, g)), min = Vec::set(Block::min(block, g));
#pragma GCC unroll 8
    for (int j = 0; j < Block::kGroup; j += W) {
        F values = Vec::mul(scale, Vec::quants(Block::template quant<SimdF32>(block, g, j)));
        if (Block::kHasMin) values = Vec::add(values, min);
        Vec::store(to + g * Block::kGroup + j, values);
    }
}

template <class Block, int... g>
static inline void dequantize_block(float* to, const uint8_t* block,
                                    std::integer_sequence<int, g...>) {
    (dequantize_group<Block, g>(to, block), ...);
}

static void dequantize(float* to, const void* blocks, Dtype dtype, int64_t n) {
    with_block_type(dtype, [&](auto type) {
        using Block = decltype(type);
        constexpr std::make_integer_sequence<int, Block::kValues / Block::kGroup> kGroups;
        const auto* block = static_cast<const uint8_t*>(blocks);
        for (int64_t i = 0; i < n; i += Block::kValues, block += Block::kBytes)
            dequantize_block<Block>(to + i, block, kGroups);
    });
}
