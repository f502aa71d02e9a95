// Attention in integers, where the processor has it.
#include <cmath>

#include "kernels/attention_case.h"
#include "kernels/cpu/cpu.h"
#include "nn/blocks.h"

namespace hark::test {
namespace {

class IntegerAttentionTest : public testing::Test {
  protected:
    void SetUp() override {
        if (!cpu_kernels().integer_attention)
            GTEST_SKIP() << "this processor has no attention in integers";
    }
    static std::vector<float> found(AttentionCase c, const Inputs& in, int bits, int threads = 2) {
        TestDevice device({"cpu", Device::cpu, Dtype::f32, 0, threads});
        c.bits = bits;
        return run(device, c, in, Dtype::f32);
    }
};

AttentionCase encoder_case() { return {2, 2, 64, 700, {650, 30}, {700, 65}, false}; }

// The places after a sequence's keys hold NaN.
TEST_F(IntegerAttentionTest, AgreesWithTheSumInDouble) {
    const AttentionCase kCases[] = {
        {2, 2, 64, 1500, {70}, {1500}, false},
        {4, 2, 64, 300, {30, 9, 150}, {300, 70, 257}, false},
        {2, 1, 80, 130, {13, 24}, {127, 129}, false},
        {1, 1, 128, 64, {25}, {64}, false},
        {3, 3, 20, 90, {47, 10}, {1, 90}, false},
        {2, 2, 64, 400, {60}, {400}, false, Dtype::f32, 4},
    };
    for (const AttentionCase& c : kCases) {
        SCOPED_TRACE(concat("size ", c.size, " capacity ", c.capacity, " deviation ", c.largest));
        Inputs in(c, Dtype::f32, 41 + c.capacity);
        in.spoil_unused(c);
        const std::vector<double> expected = expected_of(c, in);
        const std::vector<float> shorts = found(c, in, 16), bytes = found(c, in, 8);
        expect_near(shorts, expected, c.largest > 1 ? 8e-3 : 3e-3);
        expect_near(bytes, expected, c.largest > 1 ? 0.2 : 3e-2);
        EXPECT_NE(shorts, found(c, in, 32));
        EXPECT_NE(shorts, bytes);
    }
}

// All weights and values are the largest there are, with the same sign.
TEST_F(IntegerAttentionTest, TheLargestSumsFit) {
    const AttentionCase c = {1, 1, 64, 1500, {20}, {1500}, false};
    Inputs in(c, Dtype::f32, 1);
    for (const int bits : {16, 8})
        for (const float sign : {1.0f, -1.0f}) {
            std::fill(in.q.begin(), in.q.end(), sign * 7);
            std::fill(in.keys.begin(), in.keys.end(), 5.0f);
            std::fill(in.values.begin(), in.values.end(), sign * 3);
            expect_near(found(c, in, bits), std::vector<double>(20 * 64, sign * 3), 1e-6);
            // The last key's score is the negative of the others'.
            std::fill(in.keys.end() - 64, in.keys.end(), -5.0f);
            std::fill(in.values.end() - 64, in.values.end(), -sign * 3);
            expect_near(found(c, in, bits), expected_of(c, in), 1e-6);
        }
}

// As in float32: NaN in a query spoils its row, in a key all rows, and in a value its
// channel.
TEST_F(IntegerAttentionTest, NanIsNotHidden) {
    const AttentionCase c = {1, 1, 64, 100, {12}, {100}, false};
    for (const float wrong : {NAN, INFINITY, -INFINITY})
        for (const int bits : {16, 8}) {
            Inputs in(c, Dtype::f32, 3);
            in.q[static_cast<size_t>(5 * in.width + 9)] = wrong;
            std::vector<float> out = found(c, in, bits);
            for (int64_t i = 0; i < 12 * 64; ++i)
                EXPECT_EQ(std::isfinite(out[static_cast<size_t>(i)]), i / 64 != 5) << i;
            in = Inputs(c, Dtype::f32, 3);
            in.keys[40 * 64 + 9] = wrong;
            for (const float x : found(c, in, bits)) EXPECT_TRUE(std::isnan(x));
            in = Inputs(c, Dtype::f32, 3);
            in.values[40 * 64 + 9] = wrong;
            out = found(c, in, bits);
            for (int64_t i = 0; i < 12 * 64; ++i)
                EXPECT_EQ(std::isfinite(out[static_cast<size_t>(i)]), i % 64 != 9) << i;
        }
}

TEST_F(IntegerAttentionTest, ZerosGiveTheMeanOfValues) {
    const AttentionCase c = {1, 1, 64, 10, {12}, {10}, false};
    Inputs in(c, Dtype::f32, 2);
    std::fill(in.q.begin(), in.q.end(), 0.0f);
    std::fill(in.keys.begin(), in.keys.end(), 0.0f);
    for (const int bits : {16, 8}) expect_near(found(c, in, bits), expected_of(c, in), 5e-3);
    std::fill(in.values.begin(), in.values.end(), 0.0f);
    for (const int bits : {16, 8}) EXPECT_EQ(found(c, in, bits), std::vector<float>(12 * 64));
}

TEST_F(IntegerAttentionTest, BitsDoNotDependOnThreads) {
    const AttentionCase c = encoder_case();
    const Inputs in(c, Dtype::f32, 5);
    for (const int bits : {16, 8}) EXPECT_EQ(found(c, in, bits, 1), found(c, in, bits, 3));
}

// Masked queries, few queries and other caches are computed as without the option.
TEST_F(IntegerAttentionTest, OtherCallsKeepTheirBits) {
    AttentionCase causal = encoder_case(), few = encoder_case(), half = encoder_case();
    causal.causal = true;
    causal.lengths = {700, 65};
    few.queries = {8, 1};
    half.cache = Dtype::f16;
    for (const AttentionCase& c : {causal, few, half}) {
        const Inputs in(c, Dtype::f32, 6);
        EXPECT_EQ(found(c, in, 8), found(c, in, 32));
    }
}

// A block asks for the bits that its products round x to.
TEST_F(IntegerAttentionTest, BlocksTakeTheBitsOfTheirWeights) {
    const int64_t heads = 2, size = 64, c = heads * size, t = 40;
    TestDevice device(kOneThreadCase);
    Context& ctx = device.ctx();
    const auto attended = [&](const Matrix& qkv, bool through_block, int bits) {
        Tensor x = device.up(random_values(t * c, 3), Dtype::f32, {t, c});
        Tensor keys = device.empty(Dtype::f32, {1, heads, t, size});
        Tensor values = device.empty(Dtype::f32, {1, heads, t, size});
        std::vector<float> one(c * c);
        for (int64_t i = 0; i < c; ++i) one[i * c + i] = 1;
        const Norm norm = {device.up(std::vector<float>(c, 1), Dtype::f32, {c}),
                           device.up(std::vector<float>(c, 0), Dtype::f32, {c})};
        const Matrix out = {device.up(one, Dtype::f32, {c, c})};
        const BatchLayout rows = ragged_of(device, {heads, heads, size, t, {t}, {t}, false});
        if (through_block) {
            SelfAttention{{qkv, {}}, {out, {}}}.add_to(ctx, x, norm, heads, rows);
            return device.down(x);
        }
        const Append append{keys, values, c, rows};
        Tensor q = device.empty(Dtype::f32, {t, 3 * c}), sum = device.empty(Dtype::f32, {t, c});
        linear(ctx, q, x, qkv, {}, {norm, &append});
        attention(ctx, sum, q, keys, values, rows,
                  {.scale = 1 / std::sqrt(static_cast<float>(size)), .bits = bits});
        linear(ctx, x, sum, out, {.residual = x});
        return device.down(x);
    };
    const std::vector<float> w = random_values(3 * c * c, 4);
    std::vector<float> whole;
    for (const float x : w) whole.push_back(std::round(20 * x));
    const std::pair<Matrix, int> kCases[] = {
        {{device.up(w, Dtype::bf16, {3 * c, c})}, 16},
        {{device.up(whole, Dtype::i8, {3 * c, c}),
          device.up(std::vector<float>(3 * c, 0.05f), Dtype::f32, {3 * c})},
         8},
        {{device.up(w, Dtype::f32, {3 * c, c})}, 32},
        {{device.up(w, Dtype::f16, {3 * c, c})}, 32},
        {{device.up(w, Dtype::bf16, {3 * c, c}), {}, true}, 32}};
    for (const auto& [qkv, bits] : kCases)
        for (const int other : {8, 16, 32})
            EXPECT_EQ(attended(qkv, true, 0) == attended(qkv, false, other), other == bits);
}

}  // namespace
}  // namespace hark::test
