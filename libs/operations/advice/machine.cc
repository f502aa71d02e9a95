#include "operations/advice/machine.h"

#include <algorithm>
#include <cstring>

#include "core/ascii.h"
#include "core/profile/profile.h"
#include "kernels/runtime/backend.h"
#include "kernels/runtime/cuda_library.h"
#include "operations/speed/cpu_speed.h"
#include "operations/speed/gpu_speed.h"
#include "operations/speed/memory_speed.h"

namespace hark::advice {
namespace {

struct Roof {
    const char* name;
    double product, copy;
};
constexpr int kHopper = 90;

constexpr Roof kRoofs[] = {
#define HARK_ROOF(NAME, PRODUCT, COPY, SOURCE) {NAME, PRODUCT, COPY},
#include "operations/advice/roofs.def"
#undef HARK_ROOF
};

Roof roof_of(const char* name) {
    for (const Roof& roof : kRoofs)
        if (std::strcmp(roof.name, name) == 0) return roof;
    return kRoofs[std::size(kRoofs) - 1];
}

}  // namespace

double Machine::tflops(Arithmetic arithmetic) const {
    if (is_gpu) return arithmetic == Arithmetic::fp8 ? 2 * half_tflops : half_tflops;
    switch (arithmetic) {
        case Arithmetic::half:
            return half_tflops;
        case Arithmetic::int8:
            return int8_tflops;
        case Arithmetic::int16:
            // Instructions that multiply bytes multiply 16-bit integers too, twice as many as f32.
            return int8_tflops > 1.2 * f32_tflops ? 2 * f32_tflops : f32_tflops;
        case Arithmetic::f32:
        case Arithmetic::fp8:
            break;
    }
    return f32_tflops;
}

const KnownGpu* find_named_gpu(std::string_view name) {
    for (const KnownGpu& gpu : known_gpus()) {
        const std::string_view known = gpu.name;
        if (equal_ignoring_case(name, known)) return &gpu;
    }
    return nullptr;
}

std::vector<std::string> gpu_names() {
    std::vector<std::string> names;
    for (const KnownGpu& gpu : known_gpus()) names.push_back(gpu.name);
    return names;
}

Machine expected_machine(const KnownGpu& gpu) {
    const Roof roof = roof_of(gpu.name);
    Machine machine;
    machine.name = gpu.name;
    machine.is_gpu = true;
    machine.is_hopper = gpu.capability == kHopper;
    machine.half_tflops = gpu.bf16_tflops * roof.product;
    machine.gb_per_s = gpu.memory_gb_per_s * roof.copy;
    machine.memory_bytes = gpu.memory_gb * 1e9;
    machine.watts = gpu.watts;
    return machine;
}

Machine measured_cpu(int threads, double bytes) {
    const ProfileSpan span("measure");
    constexpr double kMost = 512e6;  // beyond most caches
    Machine machine;
    machine.name = "this CPU";
    machine.is_measured = true;
    machine.cores = threads;
    machine.memory_bytes = static_cast<double>(free_memory(make_cpu_context(threads)));
    machine.gb_per_s = read_bandwidth(threads, std::min({bytes, kMost, machine.memory_bytes / 4}));
    machine.f32_tflops = cpu_product_speed(threads, Dtype::f32) * 1e-3;
    machine.half_tflops = cpu_product_speed(threads, Dtype::bf16) * 1e-3;
    machine.int8_tflops = cpu_product_speed(threads, Dtype::i8) * 1e-3;
    return machine;
}

Machine measured_gpu(Context& ctx) {
    const ProfileSpan span("measure");
    Machine machine;
    machine.name = "this GPU";
    machine.is_gpu = machine.is_measured = true;
    machine.is_hopper = cuda_runtime().compute_capability(ctx.device_index) == kHopper;
    machine.memory_bytes = static_cast<double>(free_memory(ctx));
    machine.gb_per_s = gpu_copy_speed(ctx);
    machine.half_tflops = gpu_product_speed(ctx, Dtype::f16) * 1e-3;
    return machine;
}

}  // namespace hark::advice
