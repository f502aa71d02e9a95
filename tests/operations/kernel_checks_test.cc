// hark-doctor --kernels: the operations agree, and what does not is found and named.
#include "operations/doctor/kernels/kernel_checks.h"

#include <cmath>
#include <set>

#include "core/error.h"
#include "kernels/runtime/backend.h"
#include "operations/doctor_case.h"

namespace hark::doctor {
namespace {

TEST(KernelChecks, AllOperationsAgreeOnTheCpu) {
    for (const int64_t threads : {1, 2}) {
        Context ctx = make_cpu_context(threads);
        const Findings found([&](const Say& say) { check_kernels(ctx, "kernels.cpu", say); });
        const Finding& finding = found.of("kernels.cpu");
        expect_finding(finding, Status::ok,
                       concat(kernel_checks().size(), " operations agree with their definitions"));
        // Tolerances that nothing comes near would find nothing.
        EXPECT_GT(finding.value.value_or(0), 0.01);
    }
}

TEST(KernelChecks, WhatIsWrongIsNamed) {
    constexpr KernelCheck kWrong[] = {{"layer_norm", check_layer_norm, false},
                                      {"attention",
                                       [](KernelCase& on) {
                                           const Operand x = on.random({4, 64});
                                           Numbers expected = x.values;
                                           expected[100] += 0.25;
                                           on.expect(x.tensor, expected);
                                       },
                                       false},
                                      {"muon", [](KernelCase&) { fail("no memory"); }, true}};
    Context ctx = make_cpu_context(1);
    const Findings found([&](const Say& say) { check_kernels(ctx, "kernels.cpu", say, kWrong); });
    const Finding& finding = found.of("kernels.cpu");
    expect_finding(finding, Status::fail,
                   "apart from their definitions: attention: ", "run it again");
    test::expect_contains(finding.text, " times what rounding explains; muon: no memory");
    EXPECT_EQ(finding.text.find("layer_norm"), std::string::npos);
}

TEST(KernelChecks, EachOperationIsThere) {
    std::set<std::string> training;
    for (const KernelCheck& check : kernel_checks())
        if (check.is_training) training.insert(check.name);
    EXPECT_EQ(training.size(), 20u);
    EXPECT_TRUE(training.contains("muon"));
    EXPECT_FALSE(training.contains("absorbed_attention"));
}

TEST(KernelCase, WhatIsApartIsFound) {
    Context ctx(1);
    const auto worst_of = [&](double expected, double found, Dtype activations) {
        KernelCase on(ctx, activations);
        on.expect(on.up({found, 0}, Dtype::f32, {2}).tensor, {expected, 0});
        return on.worst();
    };
    EXPECT_LT(worst_of(100, 100.0001, Dtype::f32), 1);
    EXPECT_GT(worst_of(100, 100.01, Dtype::f32), 1);
    EXPECT_LT(worst_of(1, 1.004, Dtype::f16), 1);
    EXPECT_GT(worst_of(1, 1.1, Dtype::bf16), 1);
    EXPECT_EQ(worst_of(1, NAN, Dtype::f32), HUGE_VAL);
    EXPECT_EQ(worst_of(1, HUGE_VAL, Dtype::f32), HUGE_VAL);
}

TEST(KernelCase, ValuesAreThoseOfTheirType) {
    Context ctx(1);
    KernelCase on(ctx, Dtype::f32);
    const double third = 1.0 / 3;
    EXPECT_EQ(on.up({third}, Dtype::f32, {1}).values[0], static_cast<float>(third));
    EXPECT_EQ(on.up({third}, Dtype::bf16, {1}).values[0], 0.333984375);
    EXPECT_EQ(on.up({third}, Dtype::f16, {1}).values[0], 0.333251953125);
    EXPECT_EQ(on.up({-7, 3}, Dtype::i8, {2}).values, (Numbers{-7, 3}));
    EXPECT_EQ(on.up({third, 500}, Dtype::fp8, {2}).values, (Numbers{0.34375, 448}));
    EXPECT_EQ(on.down(on.ids({5, 1})), (Numbers{5, 1}));
}

TEST(KernelCase, SlopesAreThoseOfTheFunction) {
    const Numbers slopes = derivative([](const Numbers& x) { return x[0] * x[0] * x[1]; }, {3, 2});
    EXPECT_NEAR(slopes[0], 12, 1e-6);
    EXPECT_NEAR(slopes[1], 9, 1e-6);
}

TEST(KernelChecks, AGpuThatIsNotThereIsSkippedUnlessItWasAskedFor) {
    constexpr int kNoGpu = 63;
    const Findings skipped([](const Say& say) { check_gpu_kernels(false, kNoGpu, say); });
    expect_finding(skipped.of("kernels.gpu"), Status::skip, "no GPU can be used");
    const Findings failed([](const Say& say) { check_gpu_kernels(true, kNoGpu, say); });
    EXPECT_EQ(failed.of("kernels.gpu").status, Status::fail);
}

}  // namespace
}  // namespace hark::doctor
