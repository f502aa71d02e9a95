// Products of quantised weights with both bytes of 16-bit activations, by VNNI and by tiles, where
// the processor has them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>

#include "kernels/cpu/cpu.h"
#include "support/blocks.h"
#include "support/expect_products.h"

namespace hark::test {
namespace {

struct Rows {
    Rows(int64_t t, int64_t k) : x(t * k), high(t * k), low(t * k), sums(t * room_for_groups(k)) {
        for (int64_t i = 0; i < t; ++i) {
            scales.push_back(0.5f / static_cast<float>(i + 1));
            for (int64_t j = 0; j < k; ++j) {
                // The first row reaches the largest sums there can be.
                constexpr int64_t kRange = 2 * kWideRange + 1;
                const int64_t value =
                    i == 0 ? kWideRange : (i * 7919 + j * 104729) % kRange - kWideRange;
                x[static_cast<size_t>(i * k + j)] = static_cast<int16_t>(value);
            }
        }
    }
    ByteInputs inputs() { return {high.data(), low.data(), sums.data(), scales.data()}; }

    std::vector<int16_t> x;
    std::vector<int8_t> high, low;
    std::vector<int32_t> sums;
    std::vector<float> scales;
};

// Rows split into bytes.
Rows split_rows(const ByteKernels& bytes, int64_t t, Dtype dtype, int64_t k) {
    Rows rows(t, k);
    for (int64_t i = 0; i < t; ++i) bytes.split(rows.inputs(), i, rows.x.data() + i * k, dtype, k);
    return rows;
}

bool has(const ByteKernels& bytes, Dtype dtype, int64_t k) {
    return bytes.has(dtype, k) && k % block_size(dtype).values == 0;
}

TEST(ByteProducts, AgreeWithTheSumInDouble) {
    constexpr int64_t n = 5;
    const ByteKernels* bytes = cpu_kernels().bytes;
    if (!bytes) GTEST_SKIP() << "this processor has no products of bytes";
    for (const Dtype dtype : kQuantizedDtypes)
        for (const int64_t k : {64, 256, 832, 1024})
            for (const int64_t t : {1, 2, 3, 4, 7}) {
                if (!has(*bytes, dtype, k)) continue;
                RandomBlocks blocks(dtype, n, k, 2);
                Rows rows = split_rows(*bytes, t, dtype, k);
                std::vector<float> y(static_cast<size_t>(t * n)), alone(n);
                bytes->products(y.data(), n, rows.inputs(), t, blocks.bytes().data(), dtype, k, n);
                const std::vector<float> w = blocks.values();
                SCOPED_TRACE(concat(name_of(dtype), " K ", k, " T ", t));
                expect_products(y, w, rows.x, rows.scales);
                // A row's bits do not depend on the rows next to it.
                ByteInputs last = rows.inputs();
                last.high += (t - 1) * k;
                last.low += (t - 1) * k;
                last.sums += (t - 1) * room_for_groups(k);
                last.scales += t - 1;
                bytes->products(alone.data(), n, last, 1, blocks.bytes().data(), dtype, k, n);
                EXPECT_EQ(alone, std::vector<float>(y.end() - n, y.end()));
            }
}

// Memory at a multiple of 64.
template <class T>
class Aligned {
  public:
    explicit Aligned(int64_t count)
        : memory_(static_cast<T*>(std::aligned_alloc(64, (count * sizeof(T) + 63) / 64 * 64)),
                  &std::free) {}
    T* data() { return memory_.get(); }

  private:
    std::unique_ptr<T, void (*)(void*)> memory_;
};

std::vector<float> tile_products(const TileKernels& tiles, const ByteInputs& x, int64_t t,
                                 RandomBlocks& blocks, Dtype dtype, int64_t k, int64_t n) {
    const int64_t count = (t + kTileRows - 1) / kTileRows, groups = room_for_groups(k);
    Aligned<int8_t> high(count * kTileRows * k), low(count * kTileRows * k);
    Aligned<int32_t> sums(count * kTileRows * groups);
    std::vector<TileInputs> inputs;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t at = i * kTileRows;
        inputs.push_back({high.data() + at * k, low.data() + at * k, sums.data() + at * groups});
        tiles.arrange(inputs.back(), x, at, std::min(kTileRows, t - at), k);
    }
    Aligned<uint8_t> scratch(tile_scratch_bytes(k));
    std::vector<float> room(static_cast<size_t>(count * kTileRows * kPanelOutputs)), y;
    tiles.products(room.data(), kPanelOutputs, inputs.data(), x.scales, t, blocks.bytes().data(),
                   dtype, k, n, scratch.data());
    for (int64_t i = 0; i < t; ++i)
        y.insert(y.end(), room.begin() + i * kPanelOutputs, room.begin() + i * kPanelOutputs + n);
    return y;
}

void expect_bits_of_byte_products(const ByteKernels* bytes, const TileKernels* tiles) {
    for (const Dtype dtype : kQuantizedDtypes)
        for (const int64_t k : {64, 256, 832, 1024, 4352})
            for (const auto& [t, n] :
                 {std::pair<int64_t, int64_t>{1, 16}, {5, 1}, {16, 17}, {35, 32}}) {
                if (!has(*bytes, dtype, k)) continue;
                SCOPED_TRACE(concat(name_of(dtype), " K ", k, " T ", t, " N ", n));
                RandomBlocks blocks(dtype, n, k, 2);
                Rows rows = split_rows(*bytes, t, dtype, k);
                std::vector<float> expected(static_cast<size_t>(t * n));
                bytes->products(expected.data(), n, rows.inputs(), t, blocks.bytes().data(), dtype,
                                k, n);
                ASSERT_EQ(tile_products(*tiles, rows.inputs(), t, blocks, dtype, k, n), expected);
            }
}

TEST(TileProducts, HaveTheBitsOfByteProducts) {
    if (!cpu_kernels().tiles) GTEST_SKIP() << "this processor has no tiles";
    for (const CpuKernels* kernels : all_cpu_kernels()) {
        if (!kernels->tiles) continue;
        SCOPED_TRACE(kernels->name);
        expect_bits_of_byte_products(kernels->bytes, kernels->tiles);
    }
}

}  // namespace
}  // namespace hark::test
