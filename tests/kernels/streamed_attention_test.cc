// attention() of many texts with one query each, whose keys a GPU streams, against double.
#include "kernels/attention_case.h"

namespace hark::test {
namespace {

class StreamedAttention : public testing::TestWithParam<DeviceCase> {};

// Heads in groups of 2 to 8; a chunk of keys and more, filled or not; more pairs than blocks run at
// once; several parts of the keys. What the cache has beyond a text's keys is NaN.
TEST_P(StreamedAttention, AgreesWithTheSumInDouble) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype type = GetParam().activations;
    std::vector<int32_t> lengths, uneven(17, 90);
    for (int32_t b = 0; b < 140; ++b) lengths.push_back(1 + b * 37 % 160);
    const std::vector<int32_t> some(lengths.begin(), lengths.begin() + 40);
    const std::vector<int32_t> one(140, 1), few(40, 1), fewer(17, 1);
    uneven[3] = 1060;
    uneven[9] = 1025;
    uneven[16] = 1024;
    std::vector<int32_t> longer = uneven;
    longer[2] = 2080;
    longer[7] = 2049;
    longer[11] = 2048;
    const AttentionCase cases[] = {
        {16, 8, 64, 160, few, some, true, type},
        {24, 8, 128, 160, few, some, true, type},
        {14, 2, 64, 160, one, lengths, false, type},
        {16, 2, 128, 192, one, lengths, true, type},
        {56, 28, 64, 160, few, some, true, type},
        {32, 16, 64, 1060, fewer, uneven, true, type},
        {32, 16, 64, 2080, fewer, longer, true, type},
    };
    for (const AttentionCase& c : cases) {
        SCOPED_TRACE(concat(c.heads, " heads in groups of ", c.heads / c.kv_heads, ", size ",
                            c.size, ", capacity ", c.capacity));
        Inputs in(c, type, 41);
        in.spoil_unused(c);
        const std::vector<float> found = run(device, c, in, type);
        expect_near(found, expected_of(c, in), GetParam().tolerance);
        EXPECT_EQ(found, run(device, c, in, type, true));
    }
}

// Sequences without a row have no result, and a pass of many rows has single ones before.
TEST_P(StreamedAttention, TakesTheSingleRowsOfAPass) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype type = GetParam().activations;
    AttentionCase c{16,   4,   64, 96, std::vector<int32_t>(70, 1), std::vector<int32_t>(70, 33),
                    true, type};
    c.queries[5] = 0;
    c.queries[69] = 0;
    const Inputs in(c, type, 43);
    expect_near(run(device, c, in, type), expected_of(c, in), GetParam().tolerance);
    c.queries[5] = 1;
    c.queries[69] = 40;
    c.lengths[69] = 90;
    c.few = 69;
    const Inputs mixed(c, type, 44);
    expect_near(run(device, c, mixed, type), expected_of(c, mixed), GetParam().tolerance);
}

INSTANTIATE_TEST_SUITE_P(Devices, StreamedAttention, testing::Values(kCudaF16Case, kCudaBf16Case),
                         name_of_case);

}  // namespace
}  // namespace hark::test
