#include "kernels/runtime/backend.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "core/machine/cores.h"
#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/gpu_limits.h"

namespace hark {
namespace {

ComputeOptions on(const std::string& device) {
    ComputeOptions options;
    options.device = device;
    return options;
}

Context context_of(const ComputeOptions& options) {
    Console console("test");
    console.quiet = true;
    return options.context(console);
}

std::string error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const UsageError& error) {
        return std::string("usage: ") + error.what();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(Backend, AGpusHeadsHaveALimit) {
    Context ctx;
    EXPECT_NO_THROW(check_head(ctx, 1024, kMostHeadChannels));
    ctx.device = Device::cuda;  // what it checks; no GPU is asked for anything
    EXPECT_NO_THROW(check_head(ctx, kMostHeadChannels, kMostHeadChannels));
    EXPECT_THROW(check_head(ctx, kMostHeadChannels + 1, kMostHeadChannels), Error);
}

TEST(Backend, CpuTakesTheThreadsAskedFor) {
    ComputeOptions options = on("cpu");
    options.threads = 3;
    const Context ctx = context_of(options);
    EXPECT_EQ(ctx.device, Device::cpu);
    EXPECT_EQ(ctx.threads, 3);
}

TEST(Backend, NoThreadsAreAllCoresThatTheProcessMayUse) {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    EXPECT_EQ(make_cpu_context(0).threads, available_cores());
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(make_cpu_context(0).threads, 1);
    ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

TEST(Backend, MalformedDevicesAreUsageErrors) {
    for (const char* device : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1 ", "cuda:0x1",
                               "cuda:99999999999", "CPU"})
        EXPECT_EQ(error_of([&] { context_of(on(device)); })
                      .rfind(concat("usage: --device: expected auto, cpu, cuda or cuda:N, got '",
                                    device, "'"),
                             0),
                  0u)
            << device;
}

TEST(Backend, AWrongDeviceHasTheNearestRightOne) {
    const auto meant = [](const std::string& device) {
        const std::string error = error_of([&] { context_of(on(device)); });
        const size_t at = error.find("; did you mean");
        return at == error.npos ? "" : error.substr(at);
    };
    EXPECT_EQ(meant("gpu"), "; did you mean 'cuda'?");
    EXPECT_EQ(meant("GPU"), "; did you mean 'cuda'?");
    EXPECT_EQ(meant("gpu:1"), "; did you mean 'cuda:1'?");
    EXPECT_EQ(meant("cup"), "; did you mean 'cpu'?");
    EXPECT_EQ(meant("mps"), "");
}

// An Error thrown inside libhark-cuda.so is caught here as what it is.
TEST(Backend, AGpuThatCannotBeHadIsAnErrorThatSaysWhy) {
    const std::string none = error_of([] { make_cuda_context(4096); });
    EXPECT_TRUE(none.starts_with("no GPU ")) << none;
    EXPECT_FALSE(error_of([] { context_of(on("cuda:4096")); }).empty());
}

TEST(Backend, AutoTakesAGpuWhereOneWorks) {
    const bool works = error_of([] { make_cuda_context(0); }).empty();
    EXPECT_EQ(context_of(on("auto")).device, works ? Device::cuda : Device::cpu);
}

TEST(Backend, PrecisionSaysHowWeightsAndCachesAreKept) {
    const auto expect = [](const char* dtype, WeightPrecision weights, Dtype cache) {
        EXPECT_EQ(precision_of(dtype).weights, weights) << dtype;
        EXPECT_EQ(precision_of(dtype).cache, cache) << dtype;
    };
    expect("auto", WeightPrecision::as_stored, Dtype::f32);
    expect("f32", WeightPrecision::f32, Dtype::f32);
    expect("f16", WeightPrecision::f16, Dtype::f16);
    expect("bf16", WeightPrecision::bf16, Dtype::f16);
    expect("int8", WeightPrecision::int8, Dtype::f16);
    EXPECT_EQ(precision_of("auto").activations, Dtype::f32);
    EXPECT_EQ(precision_of("auto", Device::cuda).weights, WeightPrecision::quantized_or_f16);
    EXPECT_EQ(precision_of("auto", Device::cuda).activations, Dtype::f16);
    EXPECT_EQ(precision_of("f32", Device::cuda).weights, WeightPrecision::f32);
    EXPECT_EQ(precision_of("bf16", Device::cuda).activations, Dtype::bf16);
    EXPECT_EQ(precision_of("auto", Device::cuda, Dtype::bf16).weights,
              WeightPrecision::quantized_or_bf16);
    EXPECT_EQ(precision_of("auto", Device::cuda, Dtype::bf16).activations, Dtype::bf16);
    EXPECT_EQ(precision_of("auto", Device::cpu, Dtype::bf16).activations, Dtype::f32);
    EXPECT_EQ(precision_of("fp8", Device::cuda).weights, WeightPrecision::fp8);
    EXPECT_EQ(precision_of("fp8", Device::cuda).activations, Dtype::f16);
    EXPECT_EQ(precision_of("fp8", Device::cuda, Dtype::bf16).activations, Dtype::bf16);
    EXPECT_THROW(precision_of("fp4"), UsageError);
}

TEST(Backend, Fp8OnTheCpuIsAnErrorThatNamesInt8) {
    ComputeOptions options = on("cpu");
    options.dtype = "fp8";
    for (const std::string& error :
         {error_of([&] { context_of(options); }), error_of([] { precision_of("fp8"); })}) {
        EXPECT_NE(error.find("found the CPU; use --dtype int8"), error.npos) << error;
    }
}

}  // namespace
}  // namespace hark
