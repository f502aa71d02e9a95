// What a machine can do: measured here, or expected of a GPU by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/context.h"
#include "operations/gpus.h"

namespace hark::advice {

// The type that products are computed in. half: f16 or bf16. int16: quantised weights on a CPU.
// fp8: e4m3, on a GPU.
enum class Arithmetic { f32, half, int16, int8, fp8 };

struct Machine {
    std::string name;  // "h200", or the CPU's
    bool is_gpu = false;
    bool is_hopper = false;  // compute capability 9.0, for which hark has kernels of its own
    bool is_measured = false;
    int cores = 0;                                            // of the CPU; 0: not known
    double f32_tflops = 0, half_tflops = 0, int8_tflops = 0;  // of products; a GPU's: half alone
    double gb_per_s = 0;                                      // that are read
    double memory_bytes = 0;                                  // free ones
    double watts = 0;                                         // 0: not known
    std::optional<double> dollars_per_hour;

    // TFLOP/s. A GPU's is that of 16 bits, and twice that of e4m3.
    double tflops(Arithmetic arithmetic) const;
};

// The GPU of this name in gpus.def, "h100-pcie", in capitals or not; nullptr if there is none.
const KnownGpu* find_named_gpu(std::string_view name);
std::vector<std::string> gpu_names();

// Of a GPU that is known by its data sheet: the shares of it that GPUs of its kind have reached
// (roofs.def).
Machine expected_machine(const KnownGpu& gpu);

// This machine's CPU with `threads` threads: products, and reading `bytes` again and again. Takes
// about three seconds.
Machine measured_cpu(int threads, double bytes);

// The GPU of the context. Throws OutOfMemory without 2 GiB of free memory.
Machine measured_gpu(Context& ctx);

}  // namespace hark::advice
