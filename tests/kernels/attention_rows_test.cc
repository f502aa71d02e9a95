// Rows of attention() do not depend on the other rows of the call.
#include "kernels/attention_case.h"

namespace hark::test {
namespace {

// The CPU reads the index arrays, which on a GPU are not looked at by the host.
TEST(AttentionRows, QueriesWithoutKeysAndBadIndicesAreErrors) {
    TestDevice device(kCpuCase);
    Tensor out = device.empty(Dtype::f32, {3, 8}), cache = device.empty(Dtype::f32, {2, 2, 8, 4});
    const auto call = [&](std::vector<int32_t> starts, std::vector<int32_t> slots,
                          std::vector<int32_t> lengths, bool causal) {
        const BatchLayout rows = {device.up(starts), device.up(slots), device.up(lengths), 3, 8};
        attention(device.ctx(), out, out, cache, cache, rows, {.scale = 1, .causal = causal});
    };
    EXPECT_THROW(call({0, 2, 3}, {0, 1}, {0, 1}, false), Error);  // no key
    EXPECT_THROW(call({0, 2, 3}, {0, 1}, {1, 1}, true), Error);   // none for the first query
    EXPECT_THROW(call({0, 2, 3}, {0, 1}, {9, 1}, false), Error);  // beyond the capacity
    EXPECT_THROW(call({0, 2, 3}, {0, 2}, {2, 1}, false), Error);  // no such slot
    EXPECT_THROW(call({0, 2, 2}, {0, 1}, {2, 1}, false), Error);  // a row left over
    EXPECT_THROW(call({0, 4, 3}, {0, 1}, {8, 8}, false), Error);  // rows that run backwards
}

// Whatever is decoded next to a sequence, and on however many threads.
TEST(AttentionRows, AreTheSameBitsWhateverIsBesideThem) {
    TestDevice device({"cpu", Device::cpu, Dtype::f32, 0, 3}), alone(kOneThreadCase);
    for (const Dtype cache : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
        const AttentionCase c = {3,    3,    48, 700, {1, 4, 1, 20, 1}, {700, 300, 5, 90, 512},
                                 true, cache};
        const Inputs in(c, Dtype::f32, 23);
        const std::vector<float> together = run(device, c, in, Dtype::f32);
        for (size_t b = 0; b < c.queries.size(); ++b) {
            const Arena::Scope scope(alone.ctx().arena);
            const int32_t first = starts_of(c.queries)[b], count = c.queries[b];
            Tensor q = alone.up(in.q, Dtype::f32, {27, in.width}).slice(first, first + count);
            Tensor keys = alone.up(in.keys, cache, {5, 3, 700, 48});
            Tensor values = alone.up(in.values, cache, {5, 3, 700, 48});
            Tensor out = alone.empty(Dtype::f32, {count, 144});
            const BatchLayout rows = {alone.up(std::vector<int32_t>{0, count}),
                                      alone.up(std::vector<int32_t>{slots_of(c)[b]}),
                                      alone.up(std::vector<int32_t>{c.lengths[b]}), count,
                                      c.lengths[b]};
            attention(alone.ctx(), out, q, keys, values, rows,
                      {.scale = 1 / std::sqrt(48.0f), .causal = true});
            EXPECT_EQ(0, std::memcmp(out.data, together.data() + first * 144, out.bytes()))
                << name_of(cache) << " sequence " << b;
        }
    }
}

// With a window the keys of a head begin where its first query's window does.
TEST(AttentionRows, AWindowsRowsAreTheSameBitsWhateverIsBesideThem) {
    TestDevice device({"cpu", Device::cpu, Dtype::f32, 0, 3}), alone(kOneThreadCase);
    const AttentionCase c = {.heads = 3,
                             .kv_heads = 3,
                             .size = 48,
                             .capacity = 700,
                             .queries = {400, 100, 1},
                             .lengths = {700, 600, 650},
                             .causal = true,
                             .window = 300};
    const Inputs in(c, Dtype::f32, 31);
    const std::vector<float> together = run(device, c, in, Dtype::f32);
    Tensor all = alone.up(in.q, Dtype::f32, {501, in.width});
    Tensor keys = alone.up(in.keys, Dtype::f32, {3, 3, 700, 48});
    Tensor values = alone.up(in.values, Dtype::f32, {3, 3, 700, 48});
    for (size_t b = 0; b < c.queries.size(); ++b) {
        const int32_t first = starts_of(c.queries)[b], count = c.queries[b];
        Tensor out = alone.empty(Dtype::f32, {count, 144});
        const BatchLayout rows = {alone.up(std::vector<int32_t>{0, count}),
                                  alone.up(std::vector<int32_t>{slots_of(c)[b]}),
                                  alone.up(std::vector<int32_t>{c.lengths[b]}), count,
                                  c.lengths[b]};
        attention(alone.ctx(), out, all.slice(first, first + count), keys, values, rows,
                  {.scale = 1 / std::sqrt(48.0f), .causal = true, .window = 300});
        EXPECT_EQ(0, std::memcmp(out.data, together.data() + first * 144, out.bytes()))
            << "sequence " << b;
    }
}

// The rows of sequences one by one, as bytes of f16, against those of all together.
void expect_same_alone(const AttentionCase& c) {
    TestDevice device(kCudaF16Case);
    if (!device) GTEST_SKIP() << device.why_not();
    const Inputs in(c, Dtype::f16, 23);
    const std::vector<float> together = run(device, c, in, Dtype::f16);
    const int64_t slots = std::ssize(c.queries), width = c.heads * c.size;
    Tensor q = device.up(in.q, Dtype::f16, {starts_of(c.queries).back(), in.width});
    Tensor keys = device.up(in.keys, Dtype::f16, {slots, c.kv_heads, c.capacity, c.size});
    Tensor values = device.up(in.values, Dtype::f16, {slots, c.kv_heads, c.capacity, c.size});
    for (size_t b = 0; b < c.queries.size(); ++b) {
        const int32_t first = starts_of(c.queries)[b], count = c.queries[b];
        Tensor out = device.empty(Dtype::f16, {count, width});
        const BatchLayout rows = {device.up(std::vector<int32_t>{0, count}),
                                  device.up(std::vector<int32_t>{slots_of(c)[b]}),
                                  device.up(std::vector<int32_t>{c.lengths[b]}), count,
                                  c.lengths[b]};
        attention(device.ctx(), out, q.slice(first, first + count), keys, values, rows,
                  {.scale = 1 / std::sqrt(static_cast<float>(c.size)), .causal = c.causal});
        const std::vector<float> alone = device.down(out);
        EXPECT_EQ(0, std::memcmp(alone.data(), together.data() + first * width, alone.size() * 4))
            << "sequence " << b;
    }
}

// A step of decoding: a query's keys are split in the same places whatever else is in the batch.
TEST(AttentionOnCuda, DecodedRowsAreTheSameBitsWhateverIsBesideThem) {
    expect_same_alone({4, 2, 64, 700, {1, 3, 1}, {700, 300, 5}, true, Dtype::f16});
    // Together they are too many blocks: reads are not requested at once.
    expect_same_alone({28, 4, 64, 1700, {1, 1, 1}, {1700, 300, 1500}, true, Dtype::f16});
    expect_same_alone({16, 4, 128, 1400, {1, 1, 1, 1}, {1400, 300, 1, 5}, true, Dtype::f16});
}

// Enough tiles for each multiprocessor to work on several, of one sequence then and of many.
TEST(AttentionOnCuda, TiledRowsAreTheSameBitsWhateverIsBesideThem) {
    expect_same_alone(
        {48, 24, 64, 700, {700, 9, 300, 64, 400}, {700, 300, 300, 64, 513}, true, Dtype::f16});
    expect_same_alone(
        {48, 48, 64, 700, {700, 9, 300, 64, 400}, {700, 300, 1, 64, 513}, false, Dtype::f16});
    expect_same_alone({32, 32, 128, 500, {500, 9, 300}, {500, 300, 301}, true, Dtype::f16});
}

// Head sizes that fill neither vectors nor panels.
TEST(AttentionRows, AnyHeadSize) {
    TestDevice device(kCpuCase);
    for (const int64_t size : {1, 3, 8, 20, 80, 96})
        for (const int32_t queries : {1, 13}) {
            const AttentionCase c = {2,        2,    size,      31, {queries, queries},
                                     {31, 17}, true, Dtype::f16};
            const Inputs in(c, Dtype::f32, 29);
            expect_near(run(device, c, in, Dtype::f32), expected_of(c, in), 1e-5);
        }
}

}  // namespace
}  // namespace hark::test
