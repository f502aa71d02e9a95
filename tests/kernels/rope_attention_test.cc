// rope_attention against rope_append and attention, to the bit: a GPU may do both in one kernel.
#include <span>

#include "kernels/ops.h"
#include "support/ops.h"

namespace hark::test {
namespace {

struct RopeAttentionCase {
    int64_t heads, kv_heads, d, half;  // half: number of frequencies
    bool norms;
    std::vector<int32_t> queries, lengths;
    int64_t block = 32;  // keys per block of the cache
    int64_t window = 0;
    bool sinks = false;
    int64_t few = 0;  // of the first sequences, one row each, which a GPU computes apart
};

// What a layer's attention leaves.
struct Left {
    std::vector<float> out, keys, values;
};

Left run(TestDevice& device, const RopeAttentionCase& c, Dtype dtype, bool at_once, bool kv_ready) {
    Context& ctx = device.ctx();
    const Arena::Scope scope(ctx.arena);
    std::vector<int32_t> starts = {0}, positions, table;
    const int32_t longest = *std::max_element(c.lengths.begin(), c.lengths.end());
    const int64_t sequences = std::ssize(c.lengths), blocks = (longest + c.block - 1) / c.block;
    for (int64_t b = 0; b < sequences; ++b) {
        const size_t i = static_cast<size_t>(b);
        for (int32_t j = 0; j < c.queries[i]; ++j)
            positions.push_back(c.lengths[i] - c.queries[i] + j);
        starts.push_back(starts.back() + c.queries[i]);
        // Blocks of a sequence are not neighbours, and in descending order.
        for (int64_t at = 0; at < blocks; ++at)
            table.push_back(static_cast<int32_t>((blocks - 1 - at) * sequences + b));
    }
    const int64_t rows = starts.back(), q_width = c.heads * c.d, kv = c.kv_heads * c.d;
    const int64_t width = q_width + 2 * kv, places = sequences * blocks;
    std::vector<float> frequencies;
    for (int64_t i = 0; i < c.half; ++i)
        frequencies.push_back(std::pow(10000.0f, -float(i) / float(c.half)));
    const auto norm = [&](uint64_t seed) {
        if (!c.norms) return Norm{};
        return Norm{
            device.up(random_values(c.d, seed), Dtype::f32, {c.d}), {}, 1e-5f, NormKind::rms};
    };
    const auto cache = [&](uint64_t seed) {
        return device.up(random_values(places * kv * c.block, seed), dtype,
                         {places, c.kv_heads, c.block, c.d});
    };
    Tensor qkv = device.up(random_values(rows * width, 1), dtype, {rows, width});
    Tensor keys = cache(2), values = cache(3), out = device.empty(dtype, {rows, q_width});
    const Rope rope{c.half > 0 ? device.up(frequencies, Dtype::f32, {c.half}) : Tensor(), 1.25f};
    const BatchLayout layout = {device.up(starts),
                                device.up(table).reshaped({sequences, blocks}),
                                device.up(c.lengths),
                                *std::max_element(c.queries.begin(), c.queries.end()),
                                longest,
                                kv_ready,
                                c.few,
                                1};
    const AttentionOptions options = {
        .scale = 0.125f,
        .causal = true,
        .window = c.window,
        .sinks = c.sinks ? device.up(random_values(c.heads, 6), Dtype::f32, {c.heads}) : Tensor()};
    const Columns q{qkv, 0}, k{qkv, q_width}, v{qkv, q_width + kv};
    Tensor position = device.up(positions);
    if (at_once) {
        rope_attention(ctx, out, keys, values, q, k, v, position, rope, norm(4), norm(5), layout,
                       options);
    } else {
        rope_append(ctx, keys, values, q, k, v, c.heads, position, rope, norm(4), norm(5), layout);
        attention(ctx, out, qkv, keys, values, layout, options);
    }
    return {device.down(out), device.down(keys), device.down(values)};
}

void expect_same(TestDevice& device, Dtype dtype, std::span<const RopeAttentionCase> cases,
                 std::initializer_list<bool> invariances) {
    for (const RopeAttentionCase& c : cases)
        for (const bool invariant : invariances)
            for (const bool kv_ready : {true, false}) {
                SCOPED_TRACE(concat(c.heads, " heads of ", c.d, ", ", c.lengths[0], " keys",
                                    invariant ? ", batch-invariant" : "",
                                    kv_ready ? ", ready" : ""));
                device.ctx().batch_invariant = invariant;
                const Left expected = run(device, c, dtype, false, kv_ready);
                const Left found = run(device, c, dtype, true, kv_ready);
                EXPECT_TRUE(found.out == expected.out);
                EXPECT_TRUE(found.keys == expected.keys);
                EXPECT_TRUE(found.values == expected.values);
                EXPECT_TRUE(std::all_of(found.out.begin(), found.out.end(),
                                        [](float x) { return std::isfinite(x); }));
            }
}

class RopeAttention : public testing::TestWithParam<DeviceCase> {};

TEST_P(RopeAttention, IsRopeAppendAndAttention) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const RopeAttentionCase cases[] = {
        {8, 2, 64, 32, false, {1}, {1}},
        {8, 2, 64, 32, false, {1, 1, 1, 1}, {2, 31, 32, 33}},
        {14, 2, 64, 32, false, {1, 1, 1}, {128, 129, 97}},
        {32, 8, 128, 64, false, {1}, {300}, 512},  // a block per sequence
        {16, 2, 128, 64, true, {1, 1}, {257, 512}},
        {8, 1, 64, 32, true, {1, 1, 1}, {600, 1, 700}, 64},
        {8, 4, 64, 32, false, {1, 1}, {300, 40}, 32, 128},  // windows
        {8, 1, 128, 64, false, {1}, {256}, 32, 100, true},
        {8, 1, 64, 32, false, {1}, {2000}, 2048, 0, true},
        {8, 2, 64, 20, false, {1, 1}, {5, 200}},  // channels that do not turn
        {8, 2, 64, 0, false, {1}, {70}},          // none turn
        {8, 8, 64, 32, false, {1}, {70}},         // no head shares keys
        {4, 2, 80, 40, true, {1}, {70}},
        {8, 2, 64, 32, false, {3, 1}, {70, 9}},  // more rows than one
        {8, 2, 64, 32, false, {1, 1, 40}, {200, 7, 45}, 32, 0, false, 2},
    };
    expect_same(device, GetParam().activations, cases, {true, false});
}

class RopeAttentionOfManyTexts : public testing::TestWithParam<DeviceCase> {};

// Enough of them for a GPU to stream their keys. D of 64 and 128, one part of the keys and several.
TEST_P(RopeAttentionOfManyTexts, IsRopeAppendAndAttention) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const std::vector<int32_t> one(34, 1);
    std::vector<int32_t> lengths, uneven(34, 40);
    for (int32_t b = 0; b < 34; ++b) lengths.push_back(1 + b * 3);
    uneven[7] = 1025;
    uneven[30] = 1056;
    std::vector<int32_t> longer = uneven;
    longer[9] = 2049;
    longer[20] = 2080;
    const RopeAttentionCase cases[] = {
        {24, 8, 64, 32, false, one, lengths},      {16, 8, 128, 64, true, one, lengths, 64},
        {16, 8, 64, 32, true, one, uneven},        {16, 8, 64, 32, true, one, longer},
        {64, 8, 64, 32, false, one, lengths, 256},  // a block per sequence
    };
    expect_same(device, GetParam().activations, cases, {false});
}
INSTANTIATE_TEST_SUITE_P(Devices, RopeAttention,
                         testing::Values(kCpuCase, kOneThreadCase, kCudaF32Case, kCudaF16Case,
                                         kCudaBf16Case),
                         name_of_case);

INSTANTIATE_TEST_SUITE_P(Devices, RopeAttentionOfManyTexts,
                         testing::Values(kCudaF16Case, kCudaBf16Case), name_of_case);

}  // namespace
}  // namespace hark::test
