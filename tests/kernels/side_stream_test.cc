// What a side stream is given runs after what was launched before it, and before what is
// launched after the join, also where all of that is recorded.
#include "kernels/runtime/side_stream.h"

#include <gtest/gtest.h>

#include <optional>

#include "kernels/gradients.h"
#include "kernels/runtime/recorded_graph.h"
#include "support/ops.h"

using namespace hark;
using namespace hark::test;

class Side : public testing::TestWithParam<DeviceCase> {};

// x grows one by one, the side copies it at two points, and the copies are copied after the join:
// each of them too early or too late would show.
TEST_P(Side, ForksAndJoins) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    constexpr int64_t kSize = 1 << 22;
    constexpr int kSteps = 20;
    const auto filled = [&](float value) {
        return device.up(std::vector<float>(kSize, value), Dtype::f32, {1, kSize});
    };
    Tensor x = filled(0), one = filled(1);
    Tensor early = filled(0), late = filled(0), first = filled(0), second = filled(0);
    SideStream side(device.ctx());
    // GELU of such numbers is the number itself.
    const auto copy = [](Context& ctx, Tensor to, Tensor from) {
        activate(ctx, to, from, Activation::gelu);
    };
    const auto grow = [&](Context& ctx) {
        for (int i = 0; i < kSteps; ++i) add_positions(ctx, x.reshaped({1, 1, kSize}), one);
    };
    const auto work = [&](Context& ctx) {
        side.join(ctx);  // of nothing
        grow(ctx);
        side.run(ctx, [&](Context& there) { copy(there, early, x); });
        side.join(ctx);  // x is about to change
        grow(ctx);
        side.run(ctx, [&](Context& there) { copy(there, late, x); });
        side.join(ctx);
        copy(ctx, first, early);
        copy(ctx, second, late);
    };
    std::optional<GraphScratch> scratch;
    std::optional<RecordedGraph> captured;
    if (device.ctx().on_cuda()) captured.emplace(scratch.emplace(device.ctx()));
    for (int call = 0; call < 3; ++call) {  // run, recorded, replayed
        if (captured)
            (*captured)(work);
        else
            work(device.ctx());
        const auto expected = static_cast<float>(kSteps * (2 * call + 1));
        EXPECT_EQ(device.down(first), std::vector<float>(kSize, expected)) << call;
        EXPECT_EQ(device.down(second), std::vector<float>(kSize, expected + kSteps)) << call;
    }
}
INSTANTIATE_TEST_SUITE_P(Devices, Side, testing::Values(kCpuCase, kCudaF32Case), name_of_case);
