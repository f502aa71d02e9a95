#include "kernels/ops.h"

#include <algorithm>

#include "support/ops.h"

namespace hark::test {
namespace {

// One call of attention with its inputs as the caches hold them.
struct Case {
    int64_t heads, kv_heads, size, capacity;
    std::vector<int32_t> queries, lengths;
    bool causal;
    Dtype cache = Dtype::f32;
    double largest = 1;  // deviation of q
};

std::vector<int32_t> starts_of(const std::vector<int32_t>& queries) {
    std::vector<int32_t> starts = {0};
    for (const int32_t count : queries) starts.push_back(starts.back() + count);
    return starts;
}

// Slots in reverse order, so that slot and sequence are not the same number.
std::vector<int32_t> slots_of(const Case& c) {
    std::vector<int32_t> slots;
    for (size_t b = 0; b < c.queries.size(); ++b)
        slots.push_back(static_cast<int32_t>(c.queries.size() - 1 - b));
    return slots;
}

struct Inputs {
    std::vector<float> q, keys, values;
    int64_t width;  // of q's rows: columns for keys and values stand behind, as in a fused product

    Inputs(const Case& c, Dtype activations, uint64_t seed) : width((c.heads + 3) * c.size) {
        const int64_t rows = starts_of(c.queries).back();
        const int64_t cache = std::ssize(c.queries) * c.kv_heads * c.capacity * c.size;
        q = TestDevice::rounded(random_values(rows * width, seed, c.largest), activations);
        keys = TestDevice::rounded(random_values(cache, seed + 1), c.cache);
        values = TestDevice::rounded(random_values(cache, seed + 2), c.cache);
    }
};

// One row of one head, in double.
void expect_row(std::vector<double>& out, const Case& c, const Inputs& in, int64_t b, int64_t j,
                int64_t h) {
    const int64_t row = starts_of(c.queries)[b] + j, kv = h / (c.heads / c.kv_heads);
    const int64_t visible = c.causal ? c.lengths[b] - c.queries[b] + j + 1 : c.lengths[b];
    const int64_t place = (slots_of(c)[b] * c.kv_heads + kv) * c.capacity * c.size;
    std::vector<double> scores;
    for (int64_t key = 0; key < visible; ++key) {
        double sum = 0;
        for (int64_t d = 0; d < c.size; ++d)
            sum += static_cast<double>(in.q[row * in.width + h * c.size + d]) *
                   in.keys[place + key * c.size + d];
        scores.push_back(sum / std::sqrt(static_cast<double>(c.size)));
    }
    const double top = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (double& score : scores) total += score = std::exp(score - top);
    for (int64_t d = 0; d < c.size; ++d) {
        double sum = 0;
        for (int64_t key = 0; key < visible; ++key)
            sum += scores[key] * in.values[place + key * c.size + d];
        out[(row * c.heads + h) * c.size + d] = sum / total;
    }
}

std::vector<double> expected_of(const Case& c, const Inputs& in) {
    std::vector<double> out(starts_of(c.queries).back() * c.heads * c.size);
    for (int64_t b = 0; b < std::ssize(c.queries); ++b)
        for (int64_t j = 0; j < c.queries[b]; ++j)
            for (int64_t h = 0; h < c.heads; ++h) expect_row(out, c, in, b, j, h);
    return out;
}

BatchLayout ragged_of(TestDevice& device, const Case& c) {
    return {device.up(starts_of(c.queries)), device.up(slots_of(c)), device.up(c.lengths),
            *std::max_element(c.queries.begin(), c.queries.end()),
            *std::max_element(c.lengths.begin(), c.lengths.end())};
}

std::vector<float> run(TestDevice& device, const Case& c, const Inputs& in, Dtype activations,
                       bool kv_ready = false) {
    const Arena::Scope scope(device.ctx().arena);
    const int64_t rows = starts_of(c.queries).back(), slots = std::ssize(c.queries);
    Tensor out = device.empty(activations, {rows, c.heads * c.size});
    Tensor q = device.up(in.q, activations, {rows, in.width});
    Tensor keys = device.up(in.keys, c.cache, {slots, c.kv_heads, c.capacity, c.size});
    Tensor values = device.up(in.values, c.cache, {slots, c.kv_heads, c.capacity, c.size});
    BatchLayout ragged = ragged_of(device, c);
    ragged.kv_ready = kv_ready;
    attention(device.ctx(), out, q, keys, values, ragged, 1 / std::sqrt(static_cast<float>(c.size)),
              c.causal);
    return device.down(out);
}

class Attention : public testing::TestWithParam<DeviceCase> {};

TEST_P(Attention, AgreesWithTheSumInDouble) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Case kCases[] = {
        {1, 1, 64, 1, {1}, {1}, true},
        {6, 6, 64, 300, {1}, {300}, false},
        {2, 2, 64, 1100, {1, 1, 1}, {1100, 1, 257}, true},
        {2, 2, 64, 1700, {1, 1, 1, 1, 1}, {1700, 127, 128, 129, 256}, true},
        {2, 2, 128, 300, {1, 2, 8}, {129, 128, 300}, true},
        {4, 2, 64, 70, {7, 1, 70, 20}, {7, 33, 70, 64}, true},
        {3, 1, 64, 90, {9, 90, 40}, {50, 90, 41}, false},
        {2, 2, 128, 40, {33, 2}, {40, 40}, true},
        {2, 2, 64, 600, {130, 200}, {600, 513}, true},
        {2, 1, 64, 50, {30, 0, 3}, {50, 0, 9}, true, Dtype::f32, 12},
    };
    for (Case c : kCases)
        for (const Dtype cache : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
            c.cache = cache;
            SCOPED_TRACE(concat("cache ", name_of(cache), " size ", c.size, " capacity ",
                                c.capacity, " first queries ", c.queries[0]));
            const Inputs in(c, GetParam().activations, 17 + c.capacity);
            expect_near(run(device, c, in, GetParam().activations), expected_of(c, in),
                        GetParam().tolerance);
        }
}

TEST_P(Attention, AgreesWithPyTorch) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    for (const nlohmann::json& golden : kernels_golden()["attention"]) {
        const Dtype activations = GetParam().activations;
        const std::vector<int32_t> queries = golden["queries"], lengths = golden["lengths"];
        const int64_t size = golden["size"], heads = golden["heads"], slots = std::ssize(queries);
        const int64_t kv_heads = golden["kv_heads"], capacity = golden["capacity"];
        const std::vector<int32_t> starts = starts_of(queries);
        Tensor q = device.up(golden["q"], activations, {starts.back(), heads * size});
        Tensor keys = device.up(golden["keys"], Dtype::f32, {slots, kv_heads, capacity, size});
        Tensor values = device.up(golden["values"], Dtype::f32, {slots, kv_heads, capacity, size});
        Tensor out = device.empty(activations, {starts.back(), heads * size});
        const BatchLayout rows = {device.up(starts), device.up(std::vector<int32_t>{0, 1, 2, 3}),
                                  device.up(lengths),
                                  *std::max_element(queries.begin(), queries.end()),
                                  *std::max_element(lengths.begin(), lengths.end())};
        attention(device.ctx(), out, q, keys, values, rows, 1 / std::sqrt(static_cast<float>(size)),
                  golden["causal"]);
        expect_near(device.down(out), golden["out"].get<std::vector<double>>(),
                    GetParam().tolerance);
    }
}

TEST_P(Attention, WrongShapesAreErrors) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype dtype = GetParam().activations;
    const Case c = {2, 2, 64, 8, {2, 1}, {5, 8}, true};
    Tensor out = device.empty(dtype, {3, 128}), q = device.empty(dtype, {3, 128});
    Tensor cache = device.empty(Dtype::f32, {2, 2, 8, 64});
    const BatchLayout rows = ragged_of(device, c);
    Context& ctx = device.ctx();
    EXPECT_THROW(attention(ctx, device.empty(dtype, {3, 100}), q, cache, cache, rows, 1, true),
                 Error);
    EXPECT_THROW(attention(ctx, out, device.empty(dtype, {2, 128}), cache, cache, rows, 1, true),
                 Error);
    EXPECT_THROW(attention(ctx, out, device.empty(dtype, {3, 64}), cache, cache, rows, 1, true),
                 Error);
    EXPECT_THROW(
        attention(ctx, out, q, cache, device.empty(Dtype::f32, {2, 2, 7, 64}), rows, 1, true),
        Error);
    EXPECT_THROW(
        attention(ctx, out, q, cache, device.empty(Dtype::f16, {2, 2, 8, 64}), rows, 1, true),
        Error);
    EXPECT_THROW(
        attention(ctx, out, q, device.empty(Dtype::i8, {2, 2, 8, 64}), cache, rows, 1, true),
        Error);
}

// Tiles of queries and keys that are full, one over, one short and nearly empty, in the head sizes
// that Hopper's own kernel takes. What stands in the cache behind a sequence's keys is not a
// number.
TEST_P(Attention, KeysBehindTheLengthDoNotMatter) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Case kCases[] = {
        {2, 2, 64, 400, {300, 5, 192, 64}, {400, 129, 128, 127}, false},
        {4, 2, 64, 300, {193, 7, 130, 1, 6}, {300, 64, 256, 1, 6}, true},
        {2, 1, 128, 300, {129, 5, 250}, {300, 1, 131}, false},
        {3, 3, 128, 520, {300, 128, 33}, {300, 513, 65}, true},
        {1, 1, 64, 1536, {20, 0, 70}, {1500, 0, 385}, false},
        {2, 2, 64, 260, {9, 250}, {1, 259}, false, Dtype::f32, 4},
    };
    for (Case c : kCases) {
        c.cache = GetParam().activations;
        SCOPED_TRACE(concat("size ", c.size, " capacity ", c.capacity, " causal ", c.causal));
        Inputs in(c, GetParam().activations, 31 + c.capacity);
        for (size_t b = 0; b < c.queries.size(); ++b)
            for (int64_t h = 0; h < c.kv_heads; ++h) {
                const int64_t slot = (slots_of(c)[b] * c.kv_heads + h) * c.capacity;
                for (auto* cache : {&in.keys, &in.values})
                    std::fill(cache->begin() + (slot + c.lengths[b]) * c.size,
                              cache->begin() + (slot + c.capacity) * c.size, NAN);
            }
        expect_near(run(device, c, in, GetParam().activations), expected_of(c, in),
                    GetParam().tolerance);
    }
}

// Head sizes that fill no tile, in short and long runs of queries.
TEST_P(Attention, HeadSizesOfWholeVectors) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    for (const int64_t size : {8, 24, 80, 96})
        for (const int32_t queries : {1, 70})
            for (const Dtype cache : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
                const Case c = {4, 2, size, 150, {queries, queries}, {150, 71}, true, cache};
                const Inputs in(c, GetParam().activations, 29);
                SCOPED_TRACE(
                    concat("size ", size, " queries ", queries, " cache ", name_of(cache)));
                expect_near(run(device, c, in, GetParam().activations), expected_of(c, in),
                            GetParam().tolerance);
            }
}

const DeviceCase kAttentionCases[] = {kCpuCase, kOneThreadCase, kCudaF32Case, kCudaF16Case,
                                      kCudaBf16Case};
INSTANTIATE_TEST_SUITE_P(Devices, Attention, testing::ValuesIn(kAttentionCases), name_of_case);

// The CPU reads the index arrays, which on a GPU are not looked at by the host.
TEST(AttentionRows, QueriesWithoutKeysAndBadIndicesAreErrors) {
    TestDevice device(kCpuCase);
    Tensor out = device.empty(Dtype::f32, {3, 8}), cache = device.empty(Dtype::f32, {2, 2, 8, 4});
    const auto call = [&](std::vector<int32_t> starts, std::vector<int32_t> slots,
                          std::vector<int32_t> lengths, bool causal) {
        const BatchLayout rows = {device.up(starts), device.up(slots), device.up(lengths), 3, 8};
        attention(device.ctx(), out, out, cache, cache, rows, 1, causal);
    };
    EXPECT_THROW(call({0, 2, 3}, {0, 1}, {0, 1}, false), Error);  // no key
    EXPECT_THROW(call({0, 2, 3}, {0, 1}, {1, 1}, true), Error);   // none for the first query
    EXPECT_THROW(call({0, 2, 3}, {0, 1}, {9, 1}, false), Error);  // beyond the capacity
    EXPECT_THROW(call({0, 2, 3}, {0, 2}, {2, 1}, false), Error);  // no such slot
    EXPECT_THROW(call({0, 2, 2}, {0, 1}, {2, 1}, false), Error);  // a row left over
    EXPECT_THROW(call({0, 4, 3}, {0, 1}, {8, 8}, false), Error);  // rows that run backwards
}

// Whatever is decoded beside a sequence, and on however many threads.
TEST(AttentionRows, AreTheSameBitsWhateverIsBesideThem) {
    TestDevice device({"cpu", Device::cpu, Dtype::f32, 0, 3}), alone(kOneThreadCase);
    for (const Dtype cache : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
        const Case c = {3, 3, 48, 700, {1, 4, 1, 20, 1}, {700, 300, 5, 90, 512}, true, cache};
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
            attention(alone.ctx(), out, q, keys, values, rows, 1 / std::sqrt(48.0f), true);
            EXPECT_EQ(0, std::memcmp(out.data, together.data() + first * 144, out.bytes()))
                << name_of(cache) << " sequence " << b;
        }
    }
}

// The rows of sequences one by one, as bytes of f16, against those of all together.
void expect_same_alone(const Case& c) {
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
                  1 / std::sqrt(static_cast<float>(c.size)), c.causal);
        const std::vector<float> alone = device.down(out);
        EXPECT_EQ(0, std::memcmp(alone.data(), together.data() + first * width, alone.size() * 4))
            << "sequence " << b;
    }
}

// A step of decoding: a query's keys are split in the same places whatever else is in the batch.
TEST(AttentionOnCuda, DecodedRowsAreTheSameBitsWhateverIsBesideThem) {
    expect_same_alone({4, 2, 64, 700, {1, 3, 1}, {700, 300, 5}, true, Dtype::f16});
}

// What is read early is the same: one part and several, sequences of several queries, D of 80.
TEST_P(Attention, SettledCachesGiveTheSameBits) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype type = GetParam().activations;
    for (const Case& c : {Case{4, 2, 64, 700, {1, 3, 1}, {700, 300, 5}, true, type},
                          Case{3, 3, 64, 128, {1, 1, 1}, {128, 1, 127}, true, type},
                          Case{2, 2, 80, 200, {8, 1}, {150, 129}, true, type},
                          Case{6, 6, 64, 1500, {1, 2}, {1500, 1400}, false, type}}) {
        const Inputs in(c, type, 5);
        EXPECT_EQ(run(device, c, in, type), run(device, c, in, type, true));
    }
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
            const Case c = {2, 2, size, 31, {queries, queries}, {31, 17}, true, Dtype::f16};
            const Inputs in(c, Dtype::f32, 29);
            expect_near(run(device, c, in, Dtype::f32), expected_of(c, in), 1e-5);
        }
}

}  // namespace
}  // namespace hark::test
