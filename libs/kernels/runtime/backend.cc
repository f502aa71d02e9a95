#include "kernels/runtime/backend.h"

#include <dlfcn.h>
#include <omp.h>

#include <limits>

#include "core/cli/device_flag.h"
#include "core/machine/available_memory.h"
#include "core/machine/cores.h"
#include "kernels/runtime/cuda_library.h"

namespace hark {
namespace {

int thread_count(int64_t threads) {
    require(threads >= 0 && threads <= std::numeric_limits<int>::max(),
            "threads: expected 0 (all cores) or more, found ", threads);
    return threads == 0 ? available_cores() : static_cast<int>(threads);
}

// Number of GPUs that an NVIDIA driver finds; uses the driver's library only.
int gpus_there() {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver == nullptr) return 0;
    const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
    const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
    int gpus = 0;
    return init && count && init(0) == 0 && count(&gpus) == 0 ? gpus : 0;
}

}  // namespace

int64_t free_memory(const Context& ctx) {
    return ctx.on_cuda() ? static_cast<int64_t>(cuda_runtime().free_memory(ctx))
                         : available_memory();
}

Context make_cuda_context(int index, int64_t threads) {
    return cuda_runtime().make_context(index, thread_count(threads));
}

Context make_cpu_context(int64_t threads) {
    const int count = thread_count(threads);
    omp_set_num_threads(count);  // oneDNN asks OpenMP, not the context
    return Context(count);
}

Flag add_device(Flags& flags, std::string& device) {
    flags.devices([] { return std::string(cuda_library_is_there() ? "cpu, cuda" : "cpu"); });
    return flags.add("device", device, "DEVICE auto, cpu, cuda or cuda:N");
}

void ComputeOptions::flags(Flags& flags) {
    this->flags(flags, {"auto", "f32", "f16", "bf16", "int8", "fp8"},
                "TYPE type of the weights in memory",
                "auto: as they are stored, quantised ones too. The CPU then computes in float32, "
                "with products of quantised weights in 16-bit integers, and a GPU in f16, or in "
                "bf16 if the file has bf16. int8 and bf16 are faster and less exact. fp8 is for "
                "GPUs of compute capability 9.0 (H100, H200), and rounds what is multiplied too.");
}

void ComputeOptions::flags(Flags& flags, const std::vector<std::string>& dtypes,
                           const char* dtype_help, const char* dtype_details) {
    flags.section("Computing");
    add_device(flags, device).essential().details("auto uses a GPU if there is one.");
    flags.add("dtype", dtype, dtypes, dtype_help).details(dtype_details);
    flags.add("threads,t", threads, "N CPU threads; 0: all cores", 0, 4096)
        .essential()
        .details(kThreadsDetails);
}

namespace {

constexpr const char* kNoFp8 =
    "--dtype fp8: expected a GPU of compute capability 9.0 (H100, H200), found ";
constexpr const char* kInsteadOfFp8 = "; use --dtype int8";

Context gpu_context(const ComputeOptions& options, int index) {
    // 0: make_cuda_context() knows why.
    const int found = options.dtype == "fp8" ? cuda_runtime().compute_capability(index) : 0;
    require(found == 0 || found == 90, kNoFp8, "one of ", found / 10, ".", found % 10,
            kInsteadOfFp8);
    return make_cuda_context(index, options.threads);
}

Context cpu_context(const ComputeOptions& options) {
    require(options.dtype != "fp8", kNoFp8, "the CPU", kInsteadOfFp8);
    return make_cpu_context(options.threads);
}

}  // namespace

Context ComputeOptions::context(Console& console) const {
    if (const std::optional<int> index = gpu_index(device)) return gpu_context(*this, *index);
    const bool has_gpu = device == "auto" && gpus_there() > 0;
    if (has_gpu && dtype == "fp8") return gpu_context(*this, 0);
    if (has_gpu) try {
            return gpu_context(*this, 0);
        } catch (const Error& error) {
            console.warning(concat(error.what(), "; computing on the CPU"));
        }
    return cpu_context(*this);
}

Context ComputeOptions::context_at(int place) const {
    gpu_index(device);  // checks the flag
    require_usage(!device.starts_with("cuda:"),
                  "--device: several processes use one GPU each, expected cuda, got ", device);
    const int gpus = gpus_there();
    if (device == "cpu" || (device == "auto" && gpus == 0)) return cpu_context(*this);
    // A launcher may show each process only its own GPU.
    return gpu_context(*this, gpus > 0 ? place % gpus : 0);
}

Precision precision_of(const std::string& dtype, Device device, Dtype stored) {
    if (device == Device::cuda) {
        if (dtype == "auto" && stored == Dtype::bf16)
            return {WeightPrecision::quantized_or_bf16, Dtype::bf16, Dtype::bf16};
        if (dtype == "auto") return {WeightPrecision::quantized_or_f16, Dtype::f16, Dtype::f16};
        if (dtype == "f16") return {WeightPrecision::f16, Dtype::f16, Dtype::f16};
        if (dtype == "bf16") return {WeightPrecision::bf16, Dtype::bf16, Dtype::bf16};
        if (dtype == "int8") return {WeightPrecision::int8, Dtype::f16, Dtype::f16};
        if (dtype == "fp8" && stored == Dtype::bf16)
            return {WeightPrecision::fp8, Dtype::bf16, Dtype::bf16};
        if (dtype == "fp8") return {WeightPrecision::fp8, Dtype::f16, Dtype::f16};
    }
    if (dtype == "fp8") fail(kNoFp8, "the CPU", kInsteadOfFp8);
    if (dtype == "auto") return {WeightPrecision::as_stored, Dtype::f32};
    if (dtype == "f32") return {WeightPrecision::f32, Dtype::f32};
    if (dtype == "f16") return {WeightPrecision::f16, Dtype::f16};
    if (dtype == "bf16") return {WeightPrecision::bf16, Dtype::f16};
    if (dtype == "int8") return {WeightPrecision::int8, Dtype::f16};
    throw UsageError(
        concat("--dtype: expected auto, f32, f16, bf16, int8 or fp8, got '", dtype, "'"));
}

}  // namespace hark
