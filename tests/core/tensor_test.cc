#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/arena.h"
#include "core/error.h"
#include "core/half.h"

namespace hark {
namespace {

TEST(Tensor, SliceAndReshapeAreViews) {
    float values[24];
    const Tensor tensor(values, Dtype::f32, {4, 6});
    const Tensor part = tensor.slice(1, 3);
    EXPECT_EQ(part.data, values + 6);
    EXPECT_EQ(part.size(), 12);
    EXPECT_EQ(describe(part.reshaped({3, 2, 2})), "f32 (3, 2, 2)");
    EXPECT_THROW(tensor.slice(3, 5), Error);
    EXPECT_THROW(tensor.reshaped({5, 5}), Error);
    EXPECT_THROW(tensor.as<int32_t>(), Error);
}

TEST(Half, RoundTripsAndRoundsToNearestEven) {
    for (float x : {0.0f, 1.0f, -2.5f, 65504.0f, 6.103515625e-05f, 5.9604645e-08f})
        EXPECT_EQ(to_float(to_f16(x)), x);
    EXPECT_EQ(to_float(to_f16(2049.0f)), 2048.0f);
    EXPECT_EQ(to_float(to_f16(2051.0f)), 2052.0f);
    EXPECT_EQ(to_float(to_bf16(1.00390625f)), 1.0f);       // half way, to even
    EXPECT_EQ(to_float(to_bf16(1.01171875f)), 1.015625f);  // half way, to even
    EXPECT_TRUE(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
    EXPECT_TRUE(std::isinf(to_float(to_f16(70000.0f))));
}

TEST(Arena, ScopesGiveBackAndBlocksBecomeOne) {
    Arena arena;
    {
        Arena::Scope outer(arena);
        const Tensor a = arena.tensor(Dtype::f32, {1000});
        void* again = nullptr;
        {
            Arena::Scope inner(arena);
            again = arena.tensor(Dtype::f32, {10}).data;
        }
        EXPECT_EQ(arena.tensor(Dtype::f32, {10}).data, again);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data) % 64, 0u);
        arena.tensor(Dtype::u8, {10 << 20});  // a second block
    }
    const size_t capacity = arena.capacity();
    for (int i = 0; i < 3; ++i) {
        Arena::Scope scope(arena);
        arena.tensor(Dtype::f32, {1000});
        arena.tensor(Dtype::u8, {10 << 20});
        EXPECT_EQ(arena.capacity(), capacity);
    }
}

TEST(Arena, MemoryOfATensorIsItsOwn) {
    Arena arena;
    Arena::Scope scope(arena);
    std::vector<Tensor> tensors;
    for (int i = 0; i < 100; ++i) {
        tensors.push_back(arena.tensor(Dtype::i32, {100000}));
        std::fill_n(tensors.back().as<int32_t>(), 100000, i);
    }
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(tensors[i].as<int32_t>()[0], i);
        EXPECT_EQ(tensors[i].as<int32_t>()[99999], i);
    }
}

}  // namespace
}  // namespace hark
