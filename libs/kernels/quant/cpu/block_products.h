// Products of quantised blocks (kernels/quant/block_values.h) in integers: the quants of a row are
// multiplied by 16-bit activations, exactly. Products with the same scale are added before they are
// multiplied by it.
#pragma once

// The prefetch distance in rows. Four rows are too few: a core is done with them too soon.
constexpr int64_t kRowsAhead = 16;
// Unroll factor of loops over the vectors of a piece: narrow vectors are many.
constexpr int kPartsAtOnce = Vec::kIntegers < 16 ? 1 : 2;

struct ShortLanes {
    static constexpr int kCount = sizeof(Vec::Shorts) / sizeof(int16_t);
    Vec::Shorts x;

    static inline ShortLanes bytes(const uint8_t* from) { return {Vec::shorts(from)}; }
    static inline ShortLanes signed_bytes(const uint8_t* from) {
        return {Vec::shorts(reinterpret_cast<const int8_t*>(from))};
    }
    static inline ShortLanes four_bits(const uint8_t* from, int g, int j) {
        return {Vec::four_bits(from, g, j)};
    }
    static inline ShortLanes fifth_bit(const uint8_t* from, int g, int j) {
        return {Vec::fifth_bit(from, g, j)};
    }

    ShortLanes operator>>(int n) const { return {x >> static_cast<int16_t>(n)}; }
    ShortLanes operator<<(int n) const { return {x << static_cast<int16_t>(n)}; }
    ShortLanes operator&(int mask) const { return {x & static_cast<int16_t>(mask)}; }
    ShortLanes operator|(ShortLanes other) const { return {x | other.x}; }
    ShortLanes operator-(int n) const { return {x - static_cast<int16_t>(n)}; }
};

// The scale of every lane of to_floats(), for values that begin with group g.
template <class Block>
static inline F factors_at(const uint8_t* block, int g) {
    return Vec::factors<Block::kShared>([&](int i) { return Block::factor(block, g + i); });
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
                I numbers[kStep / N];
#pragma GCC unroll kPartsAtOnce
                for (int i = 0; i < kStep; i += N)
                    numbers[i / N] = Vec::integers(
                        Block::template number<ShortLanes>(block, (step + i) / Block::kGroup,
                                                           (step + i) % Block::kGroup)
                            .x);
                const F factor = factors_at<Block>(block, step / Block::kGroup);
#pragma GCC unroll 8
                for (int t = 0; t < T; ++t) {
                    I total = Vec::zero_integers();
#pragma GCC unroll kPartsAtOnce
                    for (int i = 0; i < kStep; i += N)
                        total = Vec::multiply_add(
                            numbers[i / N], Vec::load_integers(x.values + t * size + k + i), total);
                    sums[r][t] = Vec::fma(factor, Vec::to_floats(total), sums[r][t]);
                }
                if constexpr (Block::kOffset)
                    for (int i = 0; i < kStep; i += kShared) {
                        const F offset = Vec::set(Block::offset(block, (step + i) / Block::kGroup));
#pragma GCC unroll 8
                        for (int t = 0; t < T; ++t)
                            sums[r][t] =
                                Vec::fma(offset, Vec::lone(x.sums[(t * size + k + i) / kShared]),
                                         sums[r][t]);
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
template <int shared, bool offsets>
struct TakenOut {
    static constexpr int kValues = 32, kGroup = shared, kShared = shared, kBytes = kTakenOutPiece;
    static constexpr int kFactors = 64, kOffsets = kFactors + 8;
    static constexpr bool kOffset = offsets;

    static inline float float_at(const uint8_t* from) {
        float x;
        __builtin_memcpy(&x, from, sizeof x);
        return x;
    }
    static inline float factor(const uint8_t* piece, int g) {
        return float_at(piece + kFactors + g * 4);
    }
    static inline float offset(const uint8_t* piece, int g) {
        return float_at(piece + kOffsets + g * 4);
    }
    template <class Lanes>
    static inline ShortLanes number(const uint8_t* piece, int g, int j) {
        return {Vec::shorts(reinterpret_cast<const int16_t*>(piece) + g * kGroup + j)};
    }
};

template <class Block>
static void take_out(uint8_t* to, const uint8_t* rows, int64_t values) {
    using To = TakenOut<Block::kShared, Block::kOffset>;
    constexpr int64_t kPieces = Block::kValues / 32;
    for (int64_t p = 0; p < values / 32; ++p, to += kTakenOutPiece) {
        const uint8_t* block = rows + p / kPieces * Block::kBytes;
        const int first = static_cast<int>(p % kPieces * 32);
#pragma GCC unroll kPartsAtOnce
        for (int i = 0; i < 32; i += ShortLanes::kCount) {
            const auto numbers = Block::template number<ShortLanes>(
                block, (first + i) / Block::kGroup, (first + i) % Block::kGroup);
            Vec::store(reinterpret_cast<int16_t*>(to) + i, numbers.x);
        }
        for (int i = 0; i < 32; i += Block::kShared) {
            const int g = (first + i) / Block::kGroup;
            const float factor = Block::factor(block, g), offset = Block::offset(block, g);
            __builtin_memcpy(to + To::kFactors + i / Block::kShared * 4, &factor, sizeof factor);
            __builtin_memcpy(to + To::kOffsets + i / Block::kShared * 4, &offset, sizeof offset);
        }
    }
}

template <class Taken>
static void taken_out_products(float* y, int64_t ldy, const IntegerInputs& x, int64_t t_size,
                               const uint8_t* pieces, int64_t size, int64_t count) {
    tiles(count, t_size, [&](int64_t n, int64_t t, auto rows, auto inputs) {
        const IntegerInputs from = {x.values + t * size, x.scales + t,
                                    x.sums + t * size / Taken::kShared};
        block_tile<Taken, rows.value, inputs.value>(y + t * ldy + n, ldy, from,
                                                    pieces + n * (size / 32 * Taken::kBytes), size);
    });
}

static void block_products(float* y, int64_t ldy, const IntegerInputs& x, int64_t t_size,
                           const uint8_t* blocks, Dtype dtype, int64_t size, int64_t count,
                           uint8_t* scratch) {
    with_block_type(dtype, [&](auto type) {
        using Block = decltype(type);
        using Taken = TakenOut<Block::kShared, Block::kOffset>;
        const int64_t row_bytes = size / Block::kValues * Block::kBytes;
        int64_t n = 0;
        if (t_size == 1) {
            for (; n + 4 <= count; n += 4)
                block_tile<Block, 4, 1>(y + n, ldy, x, blocks + n * row_bytes, size);
            for (; n < count; ++n)
                block_tile<Block, 1, 1>(y + n, ldy, x, blocks + n * row_bytes, size);
            return;
        }
        for (; n < count; n += kTakenOutRows) {
            const int64_t some = count - n < kTakenOutRows ? count - n : kTakenOutRows;
            take_out<Block>(scratch, blocks + n * row_bytes, some * size);
            taken_out_products<Taken>(y + n, ldy, x, t_size, scratch, size, some);
        }
    });
}
