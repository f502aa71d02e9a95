// Attention with the options of modern decoders, on each device against sums in double precision.
#include "kernels/attention_case.h"

namespace hark::test {
namespace {

class AttentionOptionsOn : public testing::TestWithParam<DeviceCase> {};

// The result of each case, whose cache has the activations' type, is near the sum in double.
void expect_sums(const DeviceCase& on, std::vector<AttentionCase> cases) {
    TestDevice device(on);
    if (!device) GTEST_SKIP() << device.why_not();
    for (AttentionCase& c : cases) {
        SCOPED_TRACE(concat(c.size, " channels, window ", c.window, ", soft cap ", c.soft_cap,
                            c.sinks ? ", sinks" : ""));
        c.cache = on.activations;
        const Inputs in(c, c.cache, 5);
        expect_near(run(device, c, in, c.cache), expected_of(c, in), on.tolerance);
    }
}

// Windows, soft caps, sinks and wide heads, with few queries and with many.
TEST_P(AttentionOptionsOn, FewQueriesAndMany) {
    const std::vector<AttentionCase> cases = {
        {.heads = 4,
         .kv_heads = 2,
         .size = 64,
         .capacity = 700,
         .queries = {1, 3},
         .lengths = {600, 5},
         .causal = true,
         .window = 300},
        {.heads = 2,
         .kv_heads = 1,
         .size = 32,
         .capacity = 200,
         .queries = {40, 150},
         .lengths = {40, 190},
         .causal = true,
         .window = 17},
        {.heads = 2,
         .kv_heads = 2,
         .size = 20,
         .capacity = 90,
         .queries = {1, 60},
         .lengths = {30, 90},
         .causal = true,
         .largest = 4,
         .soft_cap = 5},
        {.heads = 4,
         .kv_heads = 1,
         .size = 64,
         .capacity = 400,
         .queries = {1, 33},
         .lengths = {400, 33},
         .causal = true,
         .sinks = true},
        {.heads = 2,
         .kv_heads = 1,
         .size = 256,
         .capacity = 80,
         .queries = {1, 70},
         .lengths = {80, 70},
         .causal = true},
        {.heads = 2,
         .kv_heads = 1,
         .size = 256,
         .capacity = 300,
         .queries = {1, 50},
         .lengths = {300, 300},
         .causal = true,
         .largest = 3,
         .window = 128,
         .soft_cap = 30,
         .sinks = true},
    };
    expect_sums(GetParam(), cases);
}

// Windows that begin anywhere in a run of 128 keys, as few blocks of a GPU and as many.
TEST_P(AttentionOptionsOn, SingleRows) {
    const std::vector<AttentionCase> cases = {
        {.heads = 2,
         .kv_heads = 1,
         .size = 64,
         .capacity = 700,
         .queries = {1, 1, 2, 1},
         .lengths = {700, 129, 257, 3},
         .causal = true,
         .window = 128,
         .sinks = true},
        {.heads = 20,
         .kv_heads = 4,
         .size = 128,
         .capacity = 700,
         .queries = {1, 2, 1, 1},
         .lengths = {700, 640, 1, 513},
         .causal = true,
         .window = 300,
         .soft_cap = 20,
         .sinks = true},
        {.heads = 16,
         .kv_heads = 8,
         .size = 256,
         .capacity = 1100,
         .queries = {1, 3},
         .lengths = {1100, 140},
         .causal = true,
         .window = 1000,
         .soft_cap = 50},
    };
    expect_sums(GetParam(), cases);
}

// DeepSeek's: keys and values of one head and 576 channels.
TEST_P(AttentionOptionsOn, LatentRows) {
    const std::vector<AttentionCase> cases = {
        {.heads = 16,
         .kv_heads = 1,
         .size = 576,
         .capacity = 600,
         .queries = {1, 3, 1},
         .lengths = {600, 140, 1},
         .causal = true},
        {.heads = 4,
         .kv_heads = 1,
         .size = 576,
         .capacity = 90,
         .queries = {1, 70},
         .lengths = {80, 90},
         .causal = true},
    };
    expect_sums(GetParam(), cases);
}

// Tiles whose first keys are before some queries' windows.
TEST_P(AttentionOptionsOn, Tiles) {
    const std::vector<AttentionCase> cases = {
        {.heads = 4,
         .kv_heads = 2,
         .size = 128,
         .capacity = 500,
         .queries = {300, 9, 150},
         .lengths = {500, 9, 400},
         .causal = true,
         .largest = 2,
         .window = 100,
         .soft_cap = 10,
         .sinks = true},
        {.heads = 2,
         .kv_heads = 2,
         .size = 40,
         .capacity = 300,
         .queries = {200, 1},
         .lengths = {300, 77},
         .causal = true,
         .window = 64,
         .sinks = true},
    };
    expect_sums(GetParam(), cases);
}

const DeviceCase kOptionDevices[] = {kCpuCase, kOneThreadCase, kCudaF32Case, kCudaF16Case,
                                     kCudaBf16Case};
INSTANTIATE_TEST_SUITE_P(Devices, AttentionOptionsOn, testing::ValuesIn(kOptionDevices),
                         name_of_case);

}  // namespace
}  // namespace hark::test
