// Products of quantised blocks (kernels/quant/block_types.h) in integers: the quants of a row are
// multiplied by 16-bit activations, exactly. Products with the same scale are added before they are
// multiplied by it.
#pragma once

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
    template <class Table>
    static inline SimdI16 lookup(SimdI16 from) {
        return {Vec::lookup(Table::kLower, Table::kUpper, from.x)};
    }

    SimdI16 operator>>(int n) const { return {x >> static_cast<int16_t>(n)}; }
    SimdI16 operator<<(int n) const { return {x << static_cast<int16_t>(n)}; }
    SimdI16 operator&(int mask) const { return {x & static_cast<int16_t>(mask)}; }
    SimdI16 operator|(SimdI16 other) const { return {x | other.x}; }
    SimdI16 operator-(int n) const { return {x - static_cast<int16_t>(n)}; }
};

// The scales and minima of a block's groups. Blocks whose scales are packed have them unpacked at
// once, into the first cache.
template <class Block>
struct GroupScales {
    inline explicit GroupScales(const uint8_t*) {}
    inline float scale(const uint8_t* block, int g) const { return Block::scale(block, g); }
    inline float min(const uint8_t* block, int g) const { return Block::min(block, g); }
};

template <class Block>
requires requires { typename Block::ScaleInteger; }
struct GroupScales<Block> {
    static constexpr int kGroups = Block::kValues / Block::kGroup;
    alignas(64) float scales[kGroups];
    alignas(64) float mins[kGroups];

    inline explicit GroupScales(const uint8_t* block) {
        typename Block::ScaleInteger integers[16];
        Block::scale_integers(block, integers);
        store_floats(scales, integers, Block::scale_unit(block));
        if constexpr (Block::kHasMin)
            store_floats(mins, integers + kGroups, -Block::min_unit(block));
    }
    inline float scale(const uint8_t*, int g) const { return scales[g]; }
    inline float min(const uint8_t*, int g) const { return mins[g]; }

  private:
    static inline void store_floats(float* to, const typename Block::ScaleInteger* from,
                                    float unit) {
        for (int i = 0; i < kGroups; i += 8) store_eight(to + i, from + i, unit);
        // The products read them one by one, from memory: a lane of a vector would take two
        // shuffles.
        asm("" : "+m"(*reinterpret_cast<float(*)[kGroups]>(to)));
    }
};

// The scale of every lane of to_floats(), for values that begin with group g.
template <class Block>
static inline F scales_at(const GroupScales<Block>& scales, const uint8_t* block, int g) {
    return Vec::scales<Block::kShared>([&](int i) { return scales.scale(block, g + i); });
}

// sums and minima (T rows of x) += 32 values of a block, the first of them value `first`, times x's
// values from k on.
template <class Block, int first, int T>
[[gnu::always_inline]] static inline void add_piece(F (&sums)[T][kChains], float (&minima)[T],
                                                    int chain, const IntegerInputs& x, int64_t size,
                                                    const GroupScales<Block>& scales,
                                                    const uint8_t* block, int64_t k) {
    using I = Vec::I;
    constexpr int N = Vec::kIntegers, kShared = Block::kShared, kStep = std::max(kShared, N);
#pragma GCC unroll kPartsAtOnce
    for (int step = first; step < first + 32; step += kStep, k += kStep) {
        I quants[kStep / N];
#pragma GCC unroll kPartsAtOnce
        for (int i = 0; i < kStep; i += N)
            quants[i / N] =
                Vec::integers(Block::template quant<SimdI16>(block, (step + i) / Block::kGroup,
                                                             (step + i) % Block::kGroup)
                                  .x);
        const F scale = scales_at<Block>(scales, block, step / Block::kGroup);
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
            I total = Vec::zero_integers();
#pragma GCC unroll kPartsAtOnce
            for (int i = 0; i < kStep; i += N)
                total = Vec::multiply_add(quants[i / N],
                                          Vec::load_integers(x.values + t * size + k + i), total);
            sums[t][chain] = Vec::fma(scale, Vec::to_floats(total), sums[t][chain]);
        }
        if constexpr (Block::kHasMin)
            for (int i = 0; i < kStep; i += kShared) {
                const float min = scales.min(block, (step + i) / Block::kGroup);
#pragma GCC unroll 8
                for (int t = 0; t < T; ++t)
                    minima[t] = Vec::fma(min, x.sums[(t * size + k + i) / kShared], minima[t]);
            }
    }
}

// One row of weights times T rows of x, in spans of at least kChains pieces of 32 values.
template <class Block, int T, bool prefetches>
static inline void block_tile(float* y, int64_t ldy, const IntegerInputs& x, const uint8_t* block,
                              int64_t size) {
    constexpr int kSpan = std::max(Block::kValues, 32 * kChains);
    constexpr int kSpanBytes = kSpan / Block::kValues * Block::kBytes;
    F sums[T][kChains];
    float minima[T] = {};
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t)
#pragma GCC unroll 2
        for (int c = 0; c < kChains; ++c) sums[t][c] = Vec::set(0.0f);
    int64_t k = 0;
    for (; k + kSpan <= size; k += kSpan, block += kSpanBytes) {
        if constexpr (prefetches) prefetch_ahead<kSpanBytes>(block);
        const GroupScales<Block> scales(block);  // several blocks of a span have theirs in them
        [&]<int... i>(std::integer_sequence<int, i...>) {
            (add_piece<Block, i * 32 % Block::kValues>(
                 sums, minima, i % kChains, x, size, scales,
                 block + i * 32 / Block::kValues * Block::kBytes, k + i * 32),
             ...);
        }
        (std::make_integer_sequence<int, kSpan / 32>());
    }
    if constexpr (Block::kValues == 32)
        for (; k < size; k += 32, block += Block::kBytes)
            add_piece<Block, 0>(sums, minima, 0, x, size, GroupScales<Block>(block), block, k);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) y[t * ldy] = (Vec::total(join(sums[t])) + minima[t]) * x.scales[t];
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
        prefetch_ahead<32 * Block::kBytes / Block::kValues>(block +
                                                            first * Block::kBytes / Block::kValues);
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

static void block_products(float* y, int64_t ldy, const IntegerInputs& x, int64_t t_size,
                           const uint8_t* blocks, Dtype dtype, int64_t size, int64_t count,
                           uint8_t* scratch) {
    with_block_type(dtype, [&](auto type) {
        using Block = decltype(type);
        using Unpacked = UnpackedBlocks<Block::kShared, Block::kHasMin>;
        const int64_t row_bytes = size / Block::kValues * Block::kBytes;
        const int64_t unpacked_bytes = size / 32 * kUnpackedPiece;
        if (t_size == 1) {
            for (int64_t n = 0; n < count; ++n)
                block_tile<Block, 1, true>(y + n, ldy, x, blocks + n * row_bytes, size);
            return;
        }
        for (int64_t first = 0; first < count; first += kUnpackedRows) {
            const int64_t rows = std::min(count - first, kUnpackedRows);
            unpack<Block>(scratch, blocks + first * row_bytes, rows * size);
            row_tiles(t_size, [&](int64_t t, auto inputs) {
                const IntegerInputs from = {x.values + t * size, x.scales + t,
                                            x.sums + t * size / Unpacked::kShared};
                for (int64_t n = 0; n < rows; ++n)
                    block_tile<Unpacked, inputs.value, false>(y + t * ldy + first + n, ldy, from,
                                                              scratch + n * unpacked_bytes, size);
            });
        }
    });
}
