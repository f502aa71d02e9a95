// attention() against double and PyTorch, on every device.
#include "kernels/attention_case.h"
#include "support/kernels_golden.h"

namespace hark::test {
namespace {

class Attention : public testing::TestWithParam<DeviceCase> {};

TEST_P(Attention, AgreesWithTheSumInDouble) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const AttentionCase kCases[] = {
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
        // Steps of too many blocks for a GPU to request all reads at once.
        {14, 2, 64, 1700, {1, 1, 1}, {1700, 1, 1600}, true},
        {12, 4, 64, 1700, {1, 1, 1, 1}, {1700, 900, 1, 1600}, true},
        {16, 4, 128, 1400, {1, 2, 1}, {1400, 700, 1200}, true},
        {16, 8, 96, 1400, {1, 1, 1}, {1400, 129, 1200}, true},
    };
    for (AttentionCase c : kCases)
        for (const Dtype cache : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::q8_0}) {
            c.cache = cache;
            SCOPED_TRACE(concat("cache ", name_of(cache), " size ", c.size, " capacity ",
                                c.capacity, " first queries ", c.queries[0]));
            const Inputs in(c, GetParam().activations, 17 + c.capacity);
            Inputs read = in;  // with many queries blocks are read in the activations' type
            if (cache == Dtype::q8_0 && *std::max_element(c.queries.begin(), c.queries.end()) > 8)
                for (std::vector<float>* rows : {&read.keys, &read.values})
                    *rows = TestDevice::rounded(*rows, GetParam().activations);
            expect_near(run(device, c, in, GetParam().activations), expected_of(c, read),
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
        attention(device.ctx(), out, q, keys, values, rows,
                  {.scale = 1 / std::sqrt(static_cast<float>(size)),
                   .causal = golden["causal"].get<bool>()});
        expect_near(device.down(out), golden["out"].get<std::vector<double>>(),
                    GetParam().tolerance);
    }
}

TEST_P(Attention, WrongShapesAreErrors) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype dtype = GetParam().activations;
    const AttentionCase c = {2, 2, 64, 8, {2, 1}, {5, 8}, true};
    Tensor out = device.empty(dtype, {3, 128}), q = device.empty(dtype, {3, 128});
    Tensor cache = device.empty(Dtype::f32, {2, 2, 8, 64});
    const BatchLayout rows = ragged_of(device, c);
    Context& ctx = device.ctx();
    EXPECT_THROW(attention(ctx, device.empty(dtype, {3, 100}), q, cache, cache, rows,
                           {.scale = 1, .causal = true}),
                 Error);
    EXPECT_THROW(attention(ctx, out, device.empty(dtype, {2, 128}), cache, cache, rows,
                           {.scale = 1, .causal = true}),
                 Error);
    EXPECT_THROW(attention(ctx, out, device.empty(dtype, {3, 64}), cache, cache, rows,
                           {.scale = 1, .causal = true}),
                 Error);
    EXPECT_THROW(attention(ctx, out, q, cache, device.empty(Dtype::f32, {2, 2, 7, 64}), rows,
                           {.scale = 1, .causal = true}),
                 Error);
    EXPECT_THROW(attention(ctx, out, q, cache, device.empty(Dtype::f16, {2, 2, 8, 64}), rows,
                           {.scale = 1, .causal = true}),
                 Error);
    EXPECT_THROW(attention(ctx, out, q, device.empty(Dtype::i8, {2, 2, 8, 64}), cache, rows,
                           {.scale = 1, .causal = true}),
                 Error);
}

// Tiles of queries and keys that are full, one over, one short and nearly empty, in the head sizes
// that Hopper's own kernel takes. What the cache holds after a sequence's keys is not a
// number.
TEST_P(Attention, KeysBehindTheLengthDoNotMatter) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const AttentionCase kCases[] = {
        {2, 2, 64, 400, {300, 5, 192, 64}, {400, 129, 128, 127}, false},
        {4, 2, 64, 300, {193, 7, 130, 1, 6}, {300, 64, 256, 1, 6}, true},
        {2, 1, 128, 300, {129, 5, 250}, {300, 1, 131}, false},
        {3, 3, 128, 520, {300, 128, 33}, {300, 513, 65}, true},
        {1, 1, 64, 1536, {20, 0, 70}, {1500, 0, 385}, false},
        {2, 2, 64, 260, {9, 250}, {1, 259}, false, Dtype::f32, 4},
        // Single rows whose heads share keys.
        {8, 2, 64, 300, {1, 3, 8}, {300, 64, 9}, true},
        {16, 2, 128, 200, {1, 1}, {130, 31}, true},
    };
    for (AttentionCase c : kCases) {
        c.cache = GetParam().activations;
        SCOPED_TRACE(concat("size ", c.size, " capacity ", c.capacity, " causal ", c.causal));
        Inputs in(c, GetParam().activations, 31 + c.capacity);
        in.spoil_unused(c);
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
                const AttentionCase c = {4,         2,    size, 150, {queries, queries},
                                         {150, 71}, true, cache};
                const Inputs in(c, GetParam().activations, 29);
                SCOPED_TRACE(
                    concat("size ", size, " queries ", queries, " cache ", name_of(cache)));
                expect_near(run(device, c, in, GetParam().activations), expected_of(c, in),
                            GetParam().tolerance);
            }
}

const DeviceCase kAttentionCases[] = {kCpuCase, kOneThreadCase, kCudaF32Case, kCudaF16Case,
                                      kCudaBf16Case};
// The values of a cache (slots, H, capacity, size) in blocks (blocks, H, block, size) of a table.
std::vector<float> in_blocks(const std::vector<float>& cache, const AttentionCase& c, int64_t block,
                             const std::vector<int32_t>& table) {
    const int64_t sequences = std::ssize(c.queries), per_sequence = c.capacity / block;
    std::vector<float> blocks(cache.size());
    for (int64_t b = 0; b < sequences; ++b)
        for (int64_t h = 0; h < c.kv_heads; ++h)
            for (int64_t p = 0; p < c.capacity; ++p) {
                const int64_t slot = slots_of(c)[size_t(b)];
                const int64_t to = table[size_t(b * per_sequence + p / block)];
                std::copy_n(cache.begin() + ((slot * c.kv_heads + h) * c.capacity + p) * c.size,
                            c.size,
                            blocks.begin() + ((to * c.kv_heads + h) * block + p % block) * c.size);
            }
    return blocks;
}

void expect_same_in_blocks(TestDevice& device, const DeviceCase& on, const AttentionCase& c,
                           int64_t block) {
    SCOPED_TRACE(concat("size ", c.size, " blocks of ", block));
    const Inputs in(c, c.cache, 9);
    const int64_t sequences = std::ssize(c.queries), per_sequence = c.capacity / block;
    const auto blocks = static_cast<int32_t>(sequences * per_sequence);
    // The table counts blocks from the last to the first.
    std::vector<int32_t> table;
    for (int32_t i = 0; i < blocks; ++i) table.push_back(blocks - 1 - i);
    const std::initializer_list<int64_t> shape = {blocks, c.kv_heads, block, c.size};
    const int64_t all = starts_of(c.queries).back();
    BatchLayout rows = ragged_of(device, c);
    rows.block_table = device.up(table).reshaped({sequences, per_sequence});
    Tensor out = device.empty(c.cache, {all, c.heads * c.size});
    attention(
        device.ctx(), out, device.up(in.q, c.cache, {all, in.width}),
        device.up(in_blocks(in.keys, c, block, table), c.cache, shape),
        device.up(in_blocks(in.values, c, block, table), c.cache, shape), rows,
        {.scale = 1 / std::sqrt(static_cast<float>(c.size)), .causal = true, .window = c.window});
    expect_near(device.down(out), expected_of(c, in), on.tolerance);
    if (!device.ctx().on_cuda()) {
        EXPECT_EQ(device.down(out), run(device, c, in, c.cache));
    }
}

// A cache in blocks of few positions, in any order; on the CPU with the bits of one of whole
// sequences. A GPU reads block tables by a kernel of its own.
TEST_P(Attention, CachesInBlocks) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    AttentionCase c = {.heads = 4,
                       .kv_heads = 2,
                       .size = 32,
                       .capacity = 320,
                       .queries = {1, 45},
                       .lengths = {300, 45},
                       .causal = true,
                       .cache = GetParam().activations,
                       .window = 290};
    expect_same_in_blocks(device, GetParam(), c, 16);
    // Single rows before parts of prompts.
    c.queries = {1, 1, 45, 9};
    c.lengths = {300, 41, 45, 310};
    c.few = 2;
    expect_same_in_blocks(device, GetParam(), c, 16);
    c.few = 0;
    // Single rows whose heads share keys.
    c.heads = 10;
    c.queries = {1, 2, 1};
    c.lengths = {300, 97, 33};
    for (const int64_t size : {64, 128}) {
        c.size = size;
        expect_same_in_blocks(device, GetParam(), c, 32);
        expect_same_in_blocks(device, GetParam(), c, 16);
    }
    // Prompts of several tiles of queries, whose last blocks are full or not.
    c.window = 0;
    c.heads = 4;
    c.queries = {200, 45, 130, 9};
    c.lengths = {320, 45, 289, 256};
    for (const int64_t size : {64, 128}) {
        c.size = size;
        for (const int64_t block : {32, 64, 16})
            expect_same_in_blocks(device, GetParam(), c, block);
    }
}

// What is read early is the same: one part and several, sequences of several queries, D of 80.
TEST_P(Attention, CachesThatAreReadyGiveTheSameBits) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype type = GetParam().activations;
    for (const AttentionCase& c :
         {AttentionCase{4, 2, 64, 700, {1, 3, 1}, {700, 300, 5}, true, type},
          AttentionCase{3, 3, 64, 128, {1, 1, 1}, {128, 1, 127}, true, type},
          AttentionCase{2, 2, 80, 200, {8, 1}, {150, 129}, true, type},
          AttentionCase{6, 6, 64, 1500, {1, 2}, {1500, 1400}, false, type}}) {
        const Inputs in(c, type, 5);
        EXPECT_EQ(run(device, c, in, type), run(device, c, in, type, true));
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, Attention, testing::ValuesIn(kAttentionCases), name_of_case);

}  // namespace
}  // namespace hark::test
