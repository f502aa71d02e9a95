#include "operations/doctor/kernels/kernel_checks.h"

#include <exception>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "kernels/runtime/backend.h"
#include "kernels/runtime/transfer.h"

namespace hark::doctor {
namespace {

constexpr std::string_view kFirstOfTraining = "linear_forward";

std::vector<KernelCheck> all_checks() {
    std::vector<KernelCheck> checks = {
#define HARK_OP(name) {#name, check_##name, false},
#include "kernels/ops.def"
#undef HARK_OP
    };
    bool is_training = false;
    for (KernelCheck& check : checks)
        check.is_training = is_training = is_training || check.name == kFirstOfTraining;
    return checks;
}

}  // namespace

std::span<const KernelCheck> kernel_checks() {
    static const std::vector<KernelCheck> kChecks = all_checks();
    return kChecks;
}

void check_kernels(Context& ctx, const std::string& check, const Say& say,
                   std::span<const KernelCheck> checks) {
    std::string wrong, nearest;
    double worst = 0;
    for (const KernelCheck& one : checks) {
        const Dtype narrow = one.is_training ? Dtype::bf16 : Dtype::f16;
        const Scratch scratch(ctx);
        KernelCase on(ctx, ctx.on_cuda() ? narrow : Dtype::f32);
        std::string problem;
        try {
            one.run(on);
            if (on.worst() > 1)
                problem = concat(figure(on.worst()), " times what rounding explains");
        } catch (const std::exception& why) {
            problem = failure_text(why);
        }
        if (!problem.empty()) wrong += concat(wrong.empty() ? "" : "; ", one.name, ": ", problem);
        if (on.worst() > worst) worst = on.worst(), nearest = one.name;
    }
    if (wrong.empty())
        return say({check, Status::ok,
                    concat(checks.size(), " operations agree with their definitions; ", nearest,
                           " is furthest, at ", figure(worst), " of what is allowed"),
                    "", worst, "of the tolerance"});
    say({check, Status::fail, "apart from their definitions: " + wrong,
         ctx.on_cuda() ? "this GPU or its memory may be broken: take another one"
                       : "run it again: if the numbers change, memory or processor are faulty, "
                         "else this build of hark is"});
}

void check_gpu_kernels(bool wanted, int index, const Say& say) {
    try {
        Context ctx = make_cuda_context(index);
        check_kernels(ctx, "kernels.gpu", say);
    } catch (const std::exception& why) {
        if (wanted)
            return say(failure("kernels.gpu", failure_text(why), "hark doctor gpu says more"));
        say({"kernels.gpu", Status::skip, "no GPU can be used; hark doctor gpu says why"});
    }
}

}  // namespace hark::doctor
