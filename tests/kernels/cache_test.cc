#include "kernels/ops.h"
#include "support/ops.h"

namespace hark::test {
namespace {

constexpr Dtype kCacheTypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16};

class AppendCache : public testing::TestWithParam<DeviceCase> {};
class CopyCache : public testing::TestWithParam<DeviceCase> {};

// Three sequences of 3, 0 and 1 rows go after 2, 4 and 0 keys into slots 2, 1 and 0.
TEST_P(AppendCache, WritesTheNewestRowsAndNothingElse) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype activations = GetParam().activations;
    constexpr int64_t kHeads = 2, kCapacity = 6;
    for (const Dtype dtype : kCacheTypes)
        for (const auto& [size, first] :
             {std::pair<int64_t, int64_t>{5, 12}, {8, 16}, {8, 3}, {64, 128}, {640, 8}}) {
            const int64_t width = first + 2 * kHeads * size + 8;
            const std::vector<float> x =
                TestDevice::rounded(random_values(4 * width, 1), activations);
            const std::vector<float> before(3 * kHeads * kCapacity * size, -7.0f);
            Tensor keys = device.up(before, dtype, {3, kHeads, kCapacity, size});
            Tensor values = device.up(before, dtype, {3, kHeads, kCapacity, size});
            const BatchLayout rows = {device.up(std::vector<int32_t>{0, 3, 3, 4}),
                                      device.up(std::vector<int32_t>{2, 1, 0}),
                                      device.up(std::vector<int32_t>{5, 4, 1}), 3, 5};
            append_cache(device.ctx(), keys, values, device.up(x, activations, {4, width}), first,
                         rows);
            const int64_t slots[] = {2, 2, 2, 0}, places[] = {2, 3, 4, 0};
            for (const Tensor& cache : {keys, values}) {
                const int64_t column = cache.data == keys.data ? first : first + kHeads * size;
                std::vector<float> expected = before;
                for (int64_t t = 0; t < 4; ++t)
                    for (int64_t h = 0; h < kHeads; ++h)
                        for (int64_t d = 0; d < size; ++d)
                            expected[((slots[t] * kHeads + h) * kCapacity + places[t]) * size + d] =
                                x[t * width + column + h * size + d];
                EXPECT_EQ(device.down(cache), TestDevice::rounded(expected, dtype))
                    << name_of(dtype) << " D " << size << " from column " << column;
            }
        }
}

TEST_P(AppendCache, WhatDoesNotFitIsAnError) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const std::vector<float> before(96, 3.0f);
    Tensor cache = device.up(before, Dtype::f32, {2, 2, 6, 4});
    Tensor values = device.up(before, Dtype::f32, {2, 2, 6, 4});
    Tensor x = device.up(std::vector<float>(40, 1.0f), GetParam().activations, {2, 20});
    const auto call = [&](Tensor to, int64_t first, int32_t slot, int32_t length) {
        const BatchLayout rows = {device.up(std::vector<int32_t>{0, 2}),
                                  device.up(std::vector<int32_t>{slot}),
                                  device.up(std::vector<int32_t>{length}), 2, 6};
        append_cache(device.ctx(), to, values, x, first, rows);
    };
    EXPECT_THROW(call(cache, 5, 0, 2), Error);  // columns beyond x
    EXPECT_THROW(call(device.empty(Dtype::i8, {2, 2, 6, 4}), 0, 0, 2), Error);
    EXPECT_THROW(call(device.empty(Dtype::f32, {2, 2, 7, 4}), 0, 0, 2), Error);  // not as values
    if (device.ctx().on_cuda()) {  // what the host cannot see is left out
        call(cache, 0, 2, 2);
        call(cache, 0, -1, 2);
        call(cache, 0, 0, 8);
        EXPECT_EQ(device.down(cache), before);
        EXPECT_EQ(device.down(values), before);
        return;
    }
    EXPECT_THROW(call(cache, 0, 2, 2), Error);  // no such slot
    EXPECT_THROW(call(cache, 0, 0, 7), Error);  // beyond the capacity
    EXPECT_THROW(call(cache, 0, 0, 1), Error);  // two rows cannot be the newest of one key
}

TEST_P(CopyCache, ReadsAllBeforeItWrites) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    for (const Dtype dtype : kCacheTypes)
        for (const auto& [capacity, length, size] :
             {std::array<int64_t, 3>{4, 3, 3}, {4, 3, 8}, {3, 2, 4}, {310, 300, 64}}) {
            const std::vector<float> old =
                TestDevice::rounded(random_values(5 * 2 * capacity * size, 1), dtype);
            std::vector<float> expected = old;
            Tensor cache = device.up(old, dtype, {5, 2, capacity, size});
            // A swap, a copy of one of them, and one that stays.
            const std::vector<int32_t> from = {0, 1, 0, 4}, to = {1, 0, 2, 4};
            copy_cache(device.ctx(), cache, device.up(from), device.up(to), length);
            for (size_t i = 0; i < from.size(); ++i)
                for (int64_t h = 0; h < 2; ++h)
                    for (int64_t k = 0; k < length * size; ++k)
                        expected[(to[i] * 2 + h) * capacity * size + k] =
                            old[(from[i] * 2 + h) * capacity * size + k];
            EXPECT_EQ(device.down(cache), expected) << name_of(dtype) << " D " << size;
        }
}

TEST_P(CopyCache, WrongSlotsAndLengthsAreErrors) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const std::vector<float> before(24, 3.0f);
    Tensor cache = device.up(before, Dtype::f32, {2, 1, 4, 3});
    const auto ints = [&](std::vector<int32_t> values) { return device.up(values); };
    EXPECT_THROW(copy_cache(device.ctx(), cache, ints({0}), ints({1}), 5), Error);
    EXPECT_THROW(copy_cache(device.ctx(), cache, ints({0}), ints({1, 0}), 1), Error);
    if (!device.ctx().on_cuda()) {
        EXPECT_THROW(copy_cache(device.ctx(), cache, ints({0}), ints({2}), 1), Error);
        EXPECT_THROW(copy_cache(device.ctx(), cache, ints({-1}), ints({0}), 1), Error);
        return;
    }
    copy_cache(device.ctx(), cache, ints({0, 1}), ints({2, -1}), 1);
    EXPECT_EQ(device.down(cache), before);
    copy_cache(device.ctx(), cache, ints({-1}), ints({1}), 1);
    const std::vector<float> found = device.down(cache);
    for (size_t i = 0; i < found.size(); ++i) {
        if (i >= 12 && i < 15)
            EXPECT_TRUE(std::isnan(found[i])) << i;
        else
            EXPECT_EQ(found[i], 3.0f) << i;
    }
}

const DeviceCase kCacheCases[] = {kCpuCase, kCudaF32Case, kCudaF16Case, kCudaBf16Case};
INSTANTIATE_TEST_SUITE_P(Devices, AppendCache, testing::ValuesIn(kCacheCases), name_of_case);
const DeviceCase kCopyCases[] = {kCpuCase, kCudaF32Case};  // there are no activations in it
INSTANTIATE_TEST_SUITE_P(Devices, CopyCache, testing::ValuesIn(kCopyCases), name_of_case);

}  // namespace
}  // namespace hark::test
