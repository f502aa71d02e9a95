// Backends: the devices of this machine, and the flags that choose one.
#pragma once

#include <string>
#include <vector>

#include "core/cli/cli.h"
#include "core/context.h"

namespace hark {

// A context on GPU `index`. `threads` threads of the CPU (0: all cores) compute the host's part.
// Throws Error that says what is missing: libhark-cuda.so, CUDA's libraries, a new enough driver,
// the device.
Context make_cuda_context(int index, int64_t threads = 1);

// A context on the CPU with `threads` threads (0: all cores).
Context make_cpu_context(int64_t threads);

// Bytes that the context's device can still give: a GPU's free memory, or the CPU's
// available_memory(). Throws Error if they cannot be read.
int64_t free_memory(const Context& ctx);

// Registers --device, and the devices that --version names.
Flag add_device(Flags& flags, std::string& device);

// The flags of every tool that computes with a model.
struct ComputeOptions {
    std::string device = "auto";
    std::string dtype = "auto";
    int64_t threads = 0;

    // --device --dtype --threads
    void flags(Flags& flags);
    // The same with other types for --dtype.
    void flags(Flags& flags, const std::vector<std::string>& dtypes, const char* dtype_help,
               const char* dtype_details);
    // Whether all flags have their default.
    bool is_standard() const { return device == "auto" && dtype == "auto" && threads == 0; }
    // The context for the flags. `auto` takes the first GPU, or the CPU if there is none; if the
    // GPU cannot be used, the CPU with a warning. `cuda` without a usable GPU is an Error.
    Context context(Console& console) const;
    // The same for one of a launcher's processes, `place` among those of its machine: each takes
    // another GPU, and `auto` is an Error too if that GPU cannot be used. Throws UsageError for
    // `cuda:N`.
    Context context_at(int place) const;
};

// The dtype of a model's weights in memory. as_stored: quantised and bf16 matrices unchanged;
// others f16 if the file's values fit it exactly, else f32. quantized_or_f16, quantized_or_bf16:
// quantised matrices unchanged; others f16 or bf16.
enum class WeightPrecision {
    as_stored,
    quantized_or_f16,
    quantized_or_bf16,
    f32,
    f16,
    bf16,
    int8,
    fp8
};

// Types of a model's weights, caches and activations in memory.
struct Precision {
    WeightPrecision weights = WeightPrecision::as_stored;
    Dtype cache = Dtype::f32;        // keys and values
    Dtype activations = Dtype::f32;  // f32 on the CPU
};

// On the CPU `auto` and `f32` compute what the reference computes; f16, bf16 and int8 also halve
// the cache. A GPU computes in f16 (bf16 for bf16, f32 for f32), `auto` with weights in f16 or
// quantised, fp8; if the file's matrices are `stored` as bf16, in bf16, since their values may be
// beyond f16. Throws Error for fp8 on the CPU.
Precision precision_of(const std::string& dtype, Device device = Device::cpu,
                       Dtype stored = Dtype::f16);

}  // namespace hark
