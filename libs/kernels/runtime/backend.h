// Backends: which devices there are, and the flags by which a tool's user chooses.
#pragma once

#include <string>
#include <vector>

#include "core/cli.h"
#include "core/context.h"

namespace hark {

// A context on GPU `index`. Throws Error that says what is missing: the library
// libhark-cuda.so, CUDA's own libraries, a driver new enough, the device.
// `threads` of the CPU, 0 for all cores, compute what is left to the host.
Context make_cuda_context(int index, int64_t threads = 1);

// A context on the CPU with `threads` threads (0: all cores).
Context make_cpu_context(int64_t threads);

// The flags of every tool that computes with a model.
struct ComputeOptions {
    std::string device = "auto";
    std::string dtype = "auto";
    int64_t threads = 0;

    // --device --dtype --threads
    void flags(Flags& flags);
    // The same, where --dtype takes other types.
    void flags(Flags& flags, const std::vector<std::string>& dtypes, const char* dtype_help,
               const char* dtype_details);
    // Whether no flag has been given another value.
    bool is_standard() const { return device == "auto" && dtype == "auto" && threads == 0; }
    // The context that the flags ask for. `auto` takes the first GPU where there is one, or the CPU
    // with a warning where that one cannot be used; `cuda` that is not available is an Error.
    Context context(Console& console) const;
    // The same for one of several processes of a launcher's, `place` among those of its machine:
    // each takes another GPU, and `auto` is an Error as well where that one cannot be used. Throws
    // UsageError for `cuda:N`.
    Context context_at(int place) const;
};

// How a model keeps its weights and its caches in memory.
struct Precision {
    // The dtype of the weights. `keep` leaves matrices of quantised blocks as they are and takes
    // f16 where the file's values fit it exactly, else f32; `keep_f16` takes f16 for all others.
    enum class Weights { keep, keep_f16, f32, f16, bf16, int8 } weights = Weights::keep;
    Dtype cache = Dtype::f32;        // keys and values
    Dtype activations = Dtype::f32;  // f32 on the CPU
};

// On the CPU auto and f32 compute what the reference computes; f16, bf16 and int8 also halve the
// cache. A GPU computes in f16 (bf16 for bf16, f32 for f32), auto with weights in f16 or quantised.
Precision precision_of(const std::string& dtype, Device device = Device::cpu);

}  // namespace hark
