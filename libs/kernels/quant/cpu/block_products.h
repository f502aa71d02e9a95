// Products of quantised blocks (kernels/quant/block_values.h) in integers: the quants of a row are
// multiplied by 16-bit activations, exactly. Products with the same scale are added before they are
// multiplied by it.
#pragma once

// The prefetch distance in rows. Four rows are too few: a core is done with them too soon.
constexpr int64_t kRowsAhead = 16;
// Unroll factor of loops over the vectors of a piece: narrow vectors are many.
constexpr int kPartsAtOnce = Vec::kIntegers < 16 ? 1 : 2;

struct SimdI16 {
    static constexpr int kCount = sizeof(Vec::Shorts) / sizeof(int16_t);
    Vec::Shorts x;

    static inline SimdI16 bytes(const uint8_t* from) { return {Vec::shorts(from)}; }
    static inline SimdI16 signed_bytes(const uint8_t* from) {
        return {Vec::shorts(reinterpret_cast<const int8_t*>(from))};
    }
    static inline SimdI16 four_bits(const uint8_t* from, int g, int j) {
        return {Vec::four_bits(from, g, j)};
    }
    static inline SimdI16 fifth_bit(const uint8_t* from, int g, int j) {
        return {Vec::fifth_bit(from, g, j)};
    }

    SimdI16 operator>>(int n) const { return {x >> static_cast<int16_t>(n)}; }
    SimdI16 operator<<(int n) const { return {x << static_cast<int16_t>(n)}; }
    SimdI16 operator&(int mask) const { return {x & static_cast<int16_t>(mask)}; }
    SimdI16 operator|(SimdI16 other) const { return {x | other.x}; }
    SimdI16 operator-(int n) const { return {x - static_cast<int16_t>(n)}; }
};

// The scale of every lane of to_floats(), for values that begin with group g.
template <class Block>
static inline F scales_at(const uint8_t* block, int g) {
    return Vec::scales<Block::kShared>([&](int i) { return Block::scale(block, g + i); });
}

// R rows of weights times T rows of x, one accumulator per product as in tile(). A piece of 32
// values is within one block.
template <class Block, int R, int T>
static inline void block_tile(float* y, int64_t ldy, const IntegerInputs& x, const uint8_t* rows,
                              int64_t size) {
    using I = Vec::I;
    constexpr int N = Vec::kIntegers, kShared = Block::kShared, kStep = std::max(kShared, N);
    constexpr int64_t kPieces = Block::kValues / 32;  // of a block
    const int64_t row_bytes = size / Block::kValues * Block::kBytes;
    F sums[R][T];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) sums[r][t] = Vec::set(0.0f);
    for (int64_t p = 0; p < size / 32; ++p) {
        const uint8_t* block = rows + p / kPieces * Block::kBytes;
        const int first = static_cast<int>(p % kPieces * 32);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r, block += row_bytes) {
            // The address may be past the last row: a prefetch does not fault.
            __builtin_prefetch(reinterpret_cast<const void*>(
                reinterpret_cast<uintptr_t>(block) +
                static_cast<uintptr_t>(kRowsAhead * row_bytes +
                                       first * Block::kBytes / Block::kValues)));
#pragma GCC unroll kPartsAtOnce
            for (int step = first; step < first + 32; step += kStep) {
                const int64_t k = p * 32 + step - first;
                I quants[kStep / N];
#pragma GCC unroll kPartsAtOnce
                for (int i = 0; i < kStep; i += N)
                    quants[i / N] = Vec::integers(
                        Block::template quant<SimdI16>(block, (step + i) / Block::kGroup,
                                                       (step + i) % Block::kGroup)
                            .x);
                const F scale = scales_at<Block>(block, step / Block::kGroup);
#pragma GCC unroll 8
                for (int t = 0; t < T; ++t) {
                    I total = Vec::zero_integers();
#pragma GCC unroll kPartsAtOnce
                    for (int i = 0; i < kStep; i += N)
                        total = Vec::multiply_add(
                            quants[i / N], Vec::load_integers(x.values + t * size + k + i), total);
                    sums[r][t] = Vec::fma(scale, Vec::to_floats(total), sums[r][t]);
                }
                if constexpr (Block::kHasMin)
                    for (int i = 0; i < kStep; i += kShared) {
                        const F min = Vec::set(Block::min(block, (step + i) / Block::kGroup));
#pragma GCC unroll 8
                        for (int t = 0; t < T; ++t)
                            sums[r][t] = Vec::fma(
                                min, Vec::lone(x.sums[(t * size + k + i) / kShared]), sums[r][t]);
                    }
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) y[t * ldy + r] = Vec::total(sums[r][t]) * x.scales[t];
}

// A piece of 32 values unpacked from a block: {32 int16; scales; mins}, padded to whole cache
// lines. Several rows of x are multiplied with an unpacked piece; the order of their sums is the
// same.
template <int shared, bool has_min>
struct UnpackedBlocks {
    static constexpr int kValues = 32, kGroup = shared, kShared = shared, kBytes = kUnpackedPiece;
    static constexpr int kScales = 64, kMins = kScales + 8;
    static constexpr bool kHasMin = has_min;

    static inline float float_at(const uint8_t* from) {
        float x;
        __builtin_memcpy(&x, from, sizeof x);
        return x;
    }
    static inline float scale(const uint8_t* piece, int g) {
        return float_at(piece + kScales + g * 4);
    }
    static inline float min(const uint8_t* piece, int g) { return float_at(piece + kMins + g * 4); }
    template <class Lanes>
    static inline SimdI16 quant(const uint8_t* piece, int g, int j) {
        return {Vec::shorts(reinterpret_cast<const int16_t*>(piece) + g * kGroup + j)};
    }
};

template <class Block>
static void unpack(uint8_t* to, const uint8_t* rows, int64_t values) {
    using To = UnpackedBlocks<Block::kShared, Block::kHasMin>;
    constexpr int64_t kPieces = Block::kValues / 32;
    for (int64_t p = 0; p < values / 32; ++p, to += kUnpackedPiece) {
        const uint8_t* block = rows + p / kPieces * Block::kBytes;
        const int first = static_cast<int>(p % kPieces * 32);
#pragma GCC unroll kPartsAtOnce
        for (int i = 0; i < 32; i += SimdI16::kCount) {
            const auto quants = Block::template quant<SimdI16>(block, (first + i) / Block::kGroup,
                                                               (first + i) % Block::kGroup);
            Vec::store(reinterpret_cast<int16_t*>(to) + i, quants.x);
        }
        for (int i = 0; i < 32; i += Block::kShared) {
            const int g = (first + i) / Block::kGroup;
            const float scale = Block::scale(block, g), min = Block::min(block, g);
            __builtin_memcpy(to + To::kScales + i / Block::kShared * 4, &scale, sizeof scale);
            __builtin_memcpy(to + To::kMins + i / Block::kShared * 4, &min, sizeof min);
        }
    }
}

template <class Unpacked>
static void unpacked_products(float* y, int64_t ldy, const IntegerInputs& x, int64_t t_size,
                              const uint8_t* pieces, int64_t size, int64_t count) {
    tiles(count, t_size, [&](int64_t n, int64_t t, auto rows, auto inputs) {
        const IntegerInputs from = {x.values + t * size, x.scales + t,
                                    x.sums + t * size / Unpacked::kShared};
        block_tile<Unpacked, rows.value, inputs.value>(
            y + t * ldy + n, ldy, from, pieces + n * (size / 32 * Unpacked::kBytes), size);
    });
}

static void block_products(float* y, int64_t ldy, const IntegerInputs& x, int64_t t_size,
                           const uint8_t* blocks, Dtype dtype, int64_t size, int64_t count,
                           uint8_t* scratch) {
    with_block_type(dtype, [&](auto type) {
        using Block = decltype(type);
        using Unpacked = UnpackedBlocks<Block::kShared, Block::kHasMin>;
        const int64_t row_bytes = size / Block::kValues * Block::kBytes;
        int64_t n = 0;
        if (t_size == 1) {
            for (; n + 4 <= count; n += 4)
                block_tile<Block, 4, 1>(y + n, ldy, x, blocks + n * row_bytes, size);
            for (; n < count; ++n)
                block_tile<Block, 1, 1>(y + n, ldy, x, blocks + n * row_bytes, size);
            return;
        }
        for (; n < count; n += kUnpackedRows) {
            const int64_t some = count - n < kUnpackedRows ? count - n : kUnpackedRows;
            unpack<Block>(scratch, blocks + n * row_bytes, some * size);
            unpacked_products<Unpacked>(y + n, ldy, x, t_size, scratch, size, some);
        }
    });
}
