#include "kernels/ops.h"
#include "support/ops.h"

namespace hark::test {
namespace {

// Two sequences of 3 and 1 rows go behind 2 and 0 keys into slots 2 and 0.
TEST(AppendCache, WritesTheNewestRowsAndNothingElse) {
    TestDevice device(kCpuCase);
    constexpr int64_t kHeads = 2, kCapacity = 6, kSize = 5, kWidth = 24, kFirst = 12;
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
        const std::vector<float> x = random_values(4 * kWidth, 1);
        std::vector<float> expected(3 * kHeads * kCapacity * kSize, -7.0f);
        Tensor cache = device.up(expected, dtype, {3, kHeads, kCapacity, kSize});
        const Ragged rows = {device.up(std::vector<int32_t>{0, 3, 4}),
                             device.up(std::vector<int32_t>{2, 0}),
                             device.up(std::vector<int32_t>{5, 1}), 3, 5};
        append_cache(device.ctx(), cache, device.up(x, Dtype::f32, {4, kWidth}), kFirst, rows);
        const int64_t slots[] = {2, 2, 2, 0}, places[] = {2, 3, 4, 0};
        for (int64_t t = 0; t < 4; ++t)
            for (int64_t h = 0; h < kHeads; ++h)
                for (int64_t d = 0; d < kSize; ++d)
                    expected[((slots[t] * kHeads + h) * kCapacity + places[t]) * kSize + d] =
                        x[t * kWidth + kFirst + h * kSize + d];
        EXPECT_EQ(device.down(cache), TestDevice::rounded(expected, dtype)) << name_of(dtype);
    }
}

TEST(AppendCache, WhatDoesNotFitIsAnError) {
    TestDevice device(kCpuCase);
    Tensor cache = device.empty(Dtype::f32, {2, 2, 6, 4}), x = device.empty(Dtype::f32, {2, 12});
    const auto call = [&](Tensor to, int64_t first, int32_t slot, int32_t length) {
        const Ragged rows = {device.up(std::vector<int32_t>{0, 2}),
                             device.up(std::vector<int32_t>{slot}),
                             device.up(std::vector<int32_t>{length}), 2, length};
        append_cache(device.ctx(), to, x, first, rows);
    };
    EXPECT_THROW(call(cache, 5, 0, 2), Error);  // columns beyond x
    EXPECT_THROW(call(cache, 0, 2, 2), Error);  // no such slot
    EXPECT_THROW(call(cache, 0, 0, 7), Error);  // beyond the capacity
    EXPECT_THROW(call(cache, 0, 0, 1), Error);  // two rows cannot be the newest of one key
    EXPECT_THROW(call(device.empty(Dtype::i8, {2, 2, 6, 4}), 0, 0, 2), Error);
}

TEST(CopyCache, ReadsAllBeforeItWrites) {
    TestDevice device(kCpuCase);
    constexpr int64_t kHead = 4 * 3;  // capacity 4, D 3
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
        std::vector<float> old(5 * 2 * kHead);
        for (size_t i = 0; i < old.size(); ++i) old[i] = static_cast<float>(i);
        std::vector<float> expected = old;
        Tensor cache = device.up(old, dtype, {5, 2, 4, 3});
        // A swap, a copy of one of them, and one that stays.
        const std::vector<int32_t> from = {0, 1, 0, 4}, to = {1, 0, 2, 4};
        copy_cache(device.ctx(), cache, device.up(from), device.up(to), 3);
        for (size_t i = 0; i < from.size(); ++i)
            for (int64_t h = 0; h < 2; ++h)
                for (int64_t k = 0; k < 3 * 3; ++k)
                    expected[(to[i] * 2 + h) * kHead + k] = old[(from[i] * 2 + h) * kHead + k];
        EXPECT_EQ(device.down(cache), expected) << name_of(dtype);
    }
}

TEST(CopyCache, WrongSlotsAndLengthsAreErrors) {
    TestDevice device(kCpuCase);
    Tensor cache = device.empty(Dtype::f32, {2, 1, 4, 3});
    const auto ints = [&](std::vector<int32_t> values) { return device.up(values); };
    EXPECT_THROW(copy_cache(device.ctx(), cache, ints({0}), ints({2}), 1), Error);
    EXPECT_THROW(copy_cache(device.ctx(), cache, ints({-1}), ints({0}), 1), Error);
    EXPECT_THROW(copy_cache(device.ctx(), cache, ints({0}), ints({1}), 5), Error);
    EXPECT_THROW(copy_cache(device.ctx(), cache, ints({0}), ints({1, 0}), 1), Error);
}

}  // namespace
}  // namespace hark::test
