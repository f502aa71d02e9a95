// Values of quantised blocks (kernels/block_values.h): loops of constant length, so that what is
// a block's layout becomes constants, and the compiler's own vectors.
#pragma once

template <class Block>
static void dequantize_block(float* to, const uint8_t* block) {
    constexpr int kGroups = Block::kValues / Block::kGroup;
#pragma GCC unroll 16
    for (int g = 0; g < kGroups; ++g) {
        const float factor = Block::factor(block, g), offset = Block::offset(block, g);
        float* values = to + g * Block::kGroup;
        for (int i = 0; i < Block::kGroup; ++i) {
            const float number = static_cast<float>(Block::number(block, g * Block::kGroup + i));
            values[i] = Block::kOffset ? factor * number + offset : factor * number;
        }
    }
}

static void dequantize(float* to, const void* blocks, Dtype dtype, int64_t n) {
    with_block_type(dtype, [&](auto type) {
        using Block = decltype(type);
        const auto* block = static_cast<const uint8_t*>(blocks);
        for (int64_t i = 0; i < n; i += Block::kValues, block += Block::kBytes)
            dequantize_block<Block>(to + i, block);
    });
}
