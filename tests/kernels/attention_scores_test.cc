#include "kernels/ops.h"

#include <algorithm>

#include "support/ops.h"

namespace hark::test {
namespace {

// Sequences of some queries over windows of `capacity` keys, in slots in reverse order.
struct AttentionScoresCase {
    int64_t heads, size, capacity, frames;
    std::vector<int32_t> queries, wanted;
    Dtype cache = Dtype::f32;
};

class AttentionScores : public testing::TestWithParam<DeviceCase> {};

// heads are on the host for every device.
Tensor on_host(std::vector<int32_t>& values) {
    return Tensor(values.data(), Dtype::i32, {std::ssize(values)});
}

void expect_sums_in_double(TestDevice& device, Dtype activations, const AttentionScoresCase& c) {
    std::vector<int32_t> starts = {0}, slots, lengths, wanted = c.wanted;
    for (const int32_t count : c.queries) {
        starts.push_back(starts.back() + count);
        slots.push_back(static_cast<int32_t>(c.queries.size() - slots.size() - 1));
        lengths.push_back(static_cast<int32_t>(c.capacity));
    }
    const int64_t rows = starts.back(), width = (c.heads + 1) * c.size, n = std::ssize(wanted);
    const std::vector<float> q = TestDevice::rounded(random_values(rows * width, 3), activations);
    const std::vector<float> keys = TestDevice::rounded(
        random_values(std::ssize(slots) * c.heads * c.capacity * c.size, 4), c.cache);
    const BatchLayout ragged = {device.up(starts), device.up(slots), device.up(lengths),
                                *std::max_element(c.queries.begin(), c.queries.end()), c.capacity};
    Tensor scores = device.empty(Dtype::f32, {n, rows, c.frames});
    attention_scores(device.ctx(), scores, device.up(q, activations, {rows, width}),
                     device.up(keys, c.cache, {std::ssize(slots), c.heads, c.capacity, c.size}),
                     on_host(wanted), ragged, 0.25f);
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

TEST_P(AttentionScores, AgreeWithTheSumInDouble) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const std::vector<int32_t> many_heads = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0,
                                             1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1};
    const AttentionScoresCase kCases[] = {
        {4, 64, 1500, 1500, {37}, {3, 1}}, {2, 64, 700, 513, {1, 20, 0, 3}, {1}},
        {3, 24, 40, 1, {5, 2}, {0, 2, 2}}, {6, 80, 9, 9, {17}, {5}},
        {2, 5, 130, 129, {1, 4}, {1, 0}},  {2, 8, 10, 9, {1}, many_heads}};
    for (AttentionScoresCase c : kCases)
        for (const Dtype cache : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
            c.cache = cache;
            SCOPED_TRACE(concat(name_of(cache), " D ", c.size));
            const Arena::Scope scope(device.ctx().arena);
            expect_sums_in_double(device, GetParam().activations, c);
        }
}

TEST_P(AttentionScores, WhatDoesNotFitIsAnError) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Tensor q = device.up(random_values(48, 1), GetParam().activations, {3, 16});
    const Tensor keys = device.up(random_values(320, 2), Dtype::f32, {2, 2, 10, 8});
    const auto call = [&](const Tensor& scores, int32_t head, int32_t slot, int32_t length) {
        std::vector<int32_t> heads = {head};
        const BatchLayout rows = {device.up(std::vector<int32_t>{0, 3}),
                                  device.up(std::vector<int32_t>{slot}),
                                  device.up(std::vector<int32_t>{length}), 3, 7};
        attention_scores(device.ctx(), scores, q, keys, on_host(heads), rows, 1);
    };
    Tensor scores = device.empty(Dtype::f32, {1, 3, 7});
    EXPECT_NO_THROW(call(scores, 1, 0, 7));
    EXPECT_THROW(call(device.empty(Dtype::f32, {1, 3, 8}), 1, 0, 7), Error);  // more than keys
    EXPECT_THROW(call(device.empty(Dtype::f32, {2, 3, 7}), 1, 0, 7), Error);  // other heads
    EXPECT_THROW(call(device.empty(Dtype::f32, {1, 2, 7}), 1, 0, 7), Error);  // other rows
    EXPECT_THROW(call(scores, 2, 0, 7), Error);                               // no such head
    for (const auto& [slot, length] : {std::pair{2, 7}, std::pair{-1, 7}, std::pair{0, 6}}) {
        if (!device.ctx().on_cuda()) {
            EXPECT_THROW(call(scores, 1, slot, length), Error);
            continue;
        }
        call(scores, 1, slot, length);  // not seen by the host: no score is a number
        for (const float score : device.down(scores)) EXPECT_TRUE(std::isnan(score));
    }
}

const DeviceCase kCases[] = {kCpuCase, kOneThreadCase, kCudaF32Case, kCudaF16Case, kCudaBf16Case};
INSTANTIATE_TEST_SUITE_P(Devices, AttentionScores, testing::ValuesIn(kCases), name_of_case);

}  // namespace
}  // namespace hark::test
