// What launches read of an upload is its own, whatever is uploaded before they have run.
#include "kernels/runtime/upload_ahead.h"

#include <gtest/gtest.h>

#include "support/ops.h"

namespace hark::test {
namespace {

class Uploads : public testing::TestWithParam<DeviceCase> {};

// Each copy is read after work that takes longer than the next copies: one that came too early
// would show.
TEST_P(Uploads, LaunchesReadTheirOwnCopy) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    constexpr int64_t kSize = 1 << 20;
    constexpr int kUploads = 6, kSteps = 20;
    Context& ctx = device.ctx();
    UploadAhead uploads(ctx, kSize * int64_t{sizeof(float)});
    Tensor busy = device.up(std::vector<float>(kSize, 0), Dtype::f32, {1, kSize});
    const Tensor one = device.up(std::vector<float>(kSize, 1), Dtype::f32, {1, kSize});
    std::vector<Tensor> found;
    for (int i = 0; i < kUploads; ++i)
        found.push_back(device.up(std::vector<float>(kSize, 100), Dtype::f32, {1, kSize}));
    for (int i = 0; i < kUploads; ++i) {
        Tensor host = ctx.host_arena.tensor(Dtype::f32, {1, kSize});
        std::fill_n(host.as<float>(), kSize, static_cast<float>(i));
        const Tensor copy = uploads(ctx, host);
        for (int step = 0; step < kSteps; ++step)
            add_positions(ctx, busy.reshaped({1, 1, kSize}), one);
        add_positions(ctx, found[static_cast<size_t>(i)].reshaped({1, 1, kSize}), copy);
    }
    for (int i = 0; i < kUploads; ++i)
        EXPECT_EQ(device.down(found[static_cast<size_t>(i)]),
                  std::vector<float>(kSize, static_cast<float>(100 + i)))
            << i;
}

TEST_P(Uploads, TooLargeOnesAreErrors) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    if (!device.ctx().on_cuda()) GTEST_SKIP() << "nothing is copied";
    UploadAhead uploads(device.ctx(), 64);
    const Tensor host = device.ctx().host_arena.tensor(Dtype::f32, {17});
    EXPECT_THROW(uploads(device.ctx(), host), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, Uploads, testing::Values(kCpuCase, kCudaF32Case), name_of_case);

}  // namespace
}  // namespace hark::test
