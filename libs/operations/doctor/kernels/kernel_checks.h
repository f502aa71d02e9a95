// kernels.cpu and kernels.gpu: every operation of the catalogue next to its definition.
#pragma once

#include <span>
#include <string>

#include "operations/doctor/finding.h"
#include "operations/doctor/kernels/kernel_case.h"

namespace hark::doctor {

struct KernelCheck {
    const char* name;  // of the operation
    void (*run)(KernelCase& on);
    bool is_training;  // gradients.h
};

// One for each line of kernels/ops.def, in its order.
std::span<const KernelCheck> kernel_checks();

// Runs `checks` on the context's device: on a CPU in f32, on a GPU in f16, those of training in
// bf16. One finding: which operations are further from their definitions than rounding explains.
void check_kernels(Context& ctx, const std::string& check, const Say& say,
                   std::span<const KernelCheck> checks = kernel_checks());

// kernels.gpu: that, or why no GPU was used. `wanted`: that is a failure.
void check_gpu_kernels(bool wanted, int index, const Say& say);

}  // namespace hark::doctor
