#include "kernels/ops.h"
#include "support/ops.h"

namespace hark::test {
namespace {

// Sequences of so many queries over windows of `capacity` keys, in slots in reverse order.
struct Case {
    int64_t heads, size, capacity, frames;
    std::vector<int32_t> queries, wanted;
    Dtype cache = Dtype::f32;
};

Tensor ints(std::vector<int32_t>& values) {
    return Tensor(values.data(), Dtype::i32, {std::ssize(values)});
}

void expect_sums_in_double(const Case& c, int threads) {
    TestDevice device({"cpu", Device::cpu, Dtype::f32, 1e-5, threads});
    std::vector<int32_t> starts = {0}, slots, lengths, wanted = c.wanted;
    for (const int32_t count : c.queries) {
        starts.push_back(starts.back() + count);
        slots.push_back(static_cast<int32_t>(c.queries.size() - slots.size() - 1));
        lengths.push_back(static_cast<int32_t>(c.capacity));
    }
    const int64_t rows = starts.back(), width = (c.heads + 1) * c.size, n = std::ssize(wanted);
    const std::vector<float> q = random_values(rows * width, 3);
    const std::vector<float> keys = TestDevice::rounded(
        random_values(std::ssize(slots) * c.heads * c.capacity * c.size, 4), c.cache);
    Tensor scores = device.empty(Dtype::f32, {n, rows, c.frames});
    attention_scores(device.ctx(), scores, device.up(q, Dtype::f32, {rows, width}),
                     device.up(keys, c.cache, {std::ssize(slots), c.heads, c.capacity, c.size}),
                     ints(wanted), {ints(starts), ints(slots), ints(lengths), 0, 0}, 0.25f);
    std::vector<double> expected;
    for (const int32_t head : wanted)
        for (size_t b = 0; b < slots.size(); ++b)
            for (int64_t t = starts[b]; t < starts[b + 1]; ++t)
                for (int64_t j = 0; j < c.frames; ++j) {
                    const int64_t key = (slots[b] * c.heads + head) * c.capacity + j;
                    double sum = 0;
                    for (int64_t d = 0; d < c.size; ++d)
                        sum += static_cast<double>(q[t * width + head * c.size + d]) *
                               keys[key * c.size + d];
                    expected.push_back(sum * 0.25);
                }
    expect_near(device.down(scores), expected, 1e-5);
}

TEST(AttentionScores, AgreeWithTheSumInDouble) {
    for (const Dtype cache : {Dtype::f32, Dtype::f16, Dtype::bf16})
        for (const int threads : {1, 3}) {
            SCOPED_TRACE(concat(name_of(cache), ", ", threads, " threads"));
            expect_sums_in_double({4, 64, 1500, 1500, {37}, {3, 1}, cache}, threads);
            expect_sums_in_double({2, 64, 700, 513, {1, 20, 0, 3}, {1}, cache}, threads);
            expect_sums_in_double({3, 24, 40, 1, {5, 2}, {0, 2, 2}, cache}, threads);
            expect_sums_in_double({6, 80, 9, 9, {17}, {5}, cache}, threads);
        }
}

TEST(AttentionScores, WhatDoesNotFitIsAnError) {
    TestDevice device(kCpuCase);
    std::vector<int32_t> heads = {1}, starts = {0, 3}, slots = {0}, lengths = {7};
    const Ragged rows = {ints(starts), ints(slots), ints(lengths), 3, 7};
    const Tensor q = device.up(random_values(48, 1), Dtype::f32, {3, 16});
    const Tensor keys = device.up(random_values(320, 2), Dtype::f32, {2, 2, 10, 8});
    const auto call = [&](const Tensor& scores) {
        attention_scores(device.ctx(), scores, q, keys, ints(heads), rows, 1);
    };
    EXPECT_NO_THROW(call(device.empty(Dtype::f32, {1, 3, 7})));
    EXPECT_THROW(call(device.empty(Dtype::f32, {1, 3, 8})), Error);  // more frames than keys
    EXPECT_THROW(call(device.empty(Dtype::f32, {2, 3, 7})), Error);  // another number of heads
    EXPECT_THROW(call(device.empty(Dtype::f32, {1, 2, 7})), Error);  // another number of rows
    heads[0] = 2;
    EXPECT_THROW(call(device.empty(Dtype::f32, {1, 3, 7})), Error);  // no such head
    heads[0] = 1, slots[0] = 2;
    EXPECT_THROW(call(device.empty(Dtype::f32, {1, 3, 7})), Error);  // no such slot
}

}  // namespace
}  // namespace hark::test
