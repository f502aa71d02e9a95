// Every operation of inference against float64, with at most twice PyTorch's error in the same
// type: tests/golden/op_errors.json and op_errors_cuda.json, made by op_errors.py, say what
// PyTorch's are on a CPU and on a GPU.
#include <cmath>
#include <cstdio>

#include "support/op_call.h"

namespace hark::test {
namespace {

class OpErrors : public testing::TestWithParam<DeviceCase> {};

TEST_P(OpErrors, AreAtMostTwicePyTorchs) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype dtype = GetParam().activations;
    for (const json& c : op_cases(GetParam().device)) {
        const std::string op = c["op"];
        // A GPU absorbs in 16 bits alone; the CPU computes in f32 alone.
        if (op == "absorbed_attention" && device.ctx().on_cuda() && dtype == Dtype::f32) continue;
        const std::vector<float> found = OpCall(device, dtype, c).result();
        const json& of = c["result"][name_of(dtype)];
        const std::vector<double> exact = of["values"];
        double largest = 0, squares = 0;
        for (size_t i = 0; i < exact.size(); ++i) {
            const double apart = std::abs(found[i * 2654435761u % found.size()] - exact[i]);
            if (!(apart <= largest)) largest = apart;  // what is not a number too
            squares += apart * apart;
        }
        const double rms = std::sqrt(squares / static_cast<double>(exact.size()));
        const double torch_largest = of["largest"], torch_rms = of["rms"];
        std::string shapes;
        for (const json& input : c["inputs"]) shapes += " " + input["shape"].dump();
        std::printf("%s%s: largest %.2f, rms %.2f of PyTorch's\n", op.c_str(), shapes.c_str(),
                    largest / torch_largest, rms / torch_rms);
        EXPECT_LE(largest, 2 * torch_largest) << op << shapes;
        EXPECT_LE(rms, 2 * torch_rms) << op << shapes;
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, OpErrors,
                         testing::Values(kCpuCase, kCudaF32Case, kCudaF16Case, kCudaBf16Case),
                         name_of_case);

}  // namespace
}  // namespace hark::test
