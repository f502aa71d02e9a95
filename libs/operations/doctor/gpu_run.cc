#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>

#include "core/error.h"
#include "core/machine/cgroup.h"
#include "kernels/ops.h"
#include "kernels/runtime/backend.h"
#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/transfer.h"
#include "operations/doctor/gpu.h"
#include "operations/doctor/nvml.h"
#include "operations/speed/gpu_speed.h"

namespace hark::doctor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunChecks[] = {"gpu.kernel", "gpu.transfer", "gpu.copy", "gpu.product"};

// A GPU as the CUDA driver counts them.
struct CudaGpu {
    int status = 0;  // of cuInit, or of the first function that failed
    std::string name, bus;
};

// CUDA's driver itself; it starts in the first call.
class CudaDriver {
  public:
    CudaDriver() : library_(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {}
    bool is_open() const { return library_ != nullptr; }

    CudaGpu gpu(int index) const {
        CudaGpu gpu;
        char name[256] = "", bus[64] = "";
        int device = 0;
        gpu.status = call("cuInit", 0u);
        if (gpu.status == 0) gpu.status = call("cuDeviceGet", &device, index);
        if (gpu.status == 0) gpu.status = call("cuDeviceGetName", name, int{sizeof name}, device);
        if (gpu.status == 0) gpu.status = call("cuDeviceGetPCIBusId", bus, int{sizeof bus}, device);
        gpu.name = name;
        gpu.bus = bus;
        return gpu;
    }

  private:
    template <class... Arguments>
    int call(const char* name, Arguments... arguments) const {
        constexpr int kNotFound = 500;  // CUDA_ERROR_NOT_FOUND
        void* const address = ::dlsym(library_, name);
        if (!address) return kNotFound;
        return reinterpret_cast<int (*)(Arguments...)>(address)(arguments...);
    }
    void* library_;
};

// Throws Error unless a product of small whole numbers is exact.
void check_product(Context& ctx) {
    constexpr int64_t kRows = 256, kColumns = 512;
    std::vector<float> x(kRows * kColumns), expected(kRows * kRows, 0), found(kRows * kRows);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 2654435761u % 9) - 4;
    for (int64_t i = 0; i < kRows; ++i)
        for (int64_t j = 0; j < kRows; ++j)
            for (int64_t k = 0; k < kColumns; ++k)
                expected[static_cast<size_t>(i * kRows + j)] +=
                    x[static_cast<size_t>(i * kColumns + k)] *
                    x[static_cast<size_t>(j * kColumns + k)];
    const Scratch scratch(ctx);
    const Tensor on_gpu = to_device(ctx, Tensor(x.data(), Dtype::f32, {kRows, kColumns}));
    const Tensor y = ctx.arena.tensor(Dtype::f32, {kRows, kRows});
    linear(ctx, y, on_gpu, {on_gpu, {}});
    read_bytes(ctx, found.data(), y.data, y.bytes());
    for (size_t i = 0; i < found.size(); ++i)
        require(found[i] == expected[i], "a product is wrong: value ", i, ": expected ",
                expected[i], ", found ", found[i],
                "; this GPU or its memory may be broken: take another one");
}

// Measures what fits, and reads the GPU's state under load.
GpuSpeedReading measure(Context& ctx, const CudaGpu& gpu, GpuReading* health) {
    GpuSpeedReading speed{.name = gpu.name};
    const Nvml nvml;
    try {
        const TransferSpeed transfer = gpu_transfer_speed(ctx);
        speed.to_gpu = transfer.to_gpu;
        speed.from_gpu = transfer.from_gpu;
        speed.product = gpu_product_speed(ctx, Dtype::bf16, 0.8,
                                          [&] {
                                              if (health) nvml.read_load(*health, gpu.bus);
                                          }) *
                        1e-3;
        speed.copy = gpu_copy_speed(ctx);
    } catch (const OutOfMemory& why) {
        speed.why_not = why.what();
    }
    return speed;
}

// NVML has a bus as "00000000:1B:00.0", CUDA as "0000:1B:00.0".
bool is_on_bus(const GpuReading& gpu, const std::string& bus) {
    return bus.size() >= 8 && gpu.bus.size() >= 8 &&
           gpu.bus.substr(gpu.bus.size() - 8) == bus.substr(bus.size() - 8);
}

// gpu.library, gpu.start and those of kRunChecks. `health`: all GPUs of NVML; the one that is used
// gets its state under load.
void run_on_gpu(int index, std::vector<GpuReading>& health, const Say& say) {
    const auto skip_from = [&](size_t first, const std::string& why) {
        for (size_t i = first; i < std::size(kRunChecks); ++i)
            say({kRunChecks[i], Status::skip, why});
    };
    const CudaDriver driver;
    CudaGpu gpu;
    if (driver.is_open()) gpu = driver.gpu(index);
    if (!driver.is_open()) {
        say({"gpu.start", Status::fail, "the driver's library libcuda.so.1 cannot be loaded",
             "install NVIDIA's driver with its CUDA part (Debian: libcuda1)"});
    } else if (gpu.status != 0) {
        const StartError error = start_error(gpu.status);
        say({"gpu.start", Status::fail, error.text, error.remedy});
    } else {
        say({"gpu.start", Status::ok, concat("CUDA's GPU ", index, " is ", gpu.name)});
    }
    bool loads = false;
    try {
        loads = cuda_runtime().make_context != nullptr;
        say({"gpu.library", Status::ok, "libhark-cuda.so and cuBLAS are loaded"});
    } catch (const PluginError& why) {
        say(library_failure(why));
    }
    if (!driver.is_open() || gpu.status != 0 || !loads) return skip_from(0, "no kernel can run");
    size_t next = 0;  // of kRunChecks
    try {
        Context ctx = make_cuda_context(index);
        check_product(ctx);
        next = 1;
        say({"gpu.kernel", Status::ok, "a product of small whole numbers is exact"});
        GpuReading* used = nullptr;
        for (GpuReading& one : health)
            if (is_on_bus(one, gpu.bus)) used = &one;
        judge_speed(measure(ctx, gpu, used), say);
    } catch (const std::exception& why) {
        say(failure(kRunChecks[next], failure_text(why), "look for NVRM and Xid in dmesg"));
        skip_from(next + 1, "a kernel failed");
    }
}

}  // namespace

DriverReading read_driver(const fs::path& root) {
    DriverReading reading;
    std::error_code failed;
    for (fs::directory_iterator entry(root / "sys/bus/pci/devices", failed), end;
         !failed && entry != end; entry.increment(failed))
        if (first_line(entry->path() / "vendor") == "0x10de" &&
            first_line(entry->path() / "class").starts_with("0x03"))
            ++reading.bus_gpus;
    const fs::path control = root / "dev/nvidiactl";
    reading.device_file = fs::exists(control, failed);
    reading.device_opens = ::access(control.c_str(), R_OK | W_OK) == 0;
    const Nvml nvml;
    reading.has_library = nvml.is_open();
    reading.status = nvml.status();
    if (!nvml.is_open()) return reading;
    if (nvml.status() != 0) reading.status_text = nvml.status_text();
    if (nvml.status() != 0) return reading;
    reading.version = nvml.driver_version();
    reading.cuda = nvml.cuda_version();
    reading.gpus = nvml.gpus();
    return reading;
}

void check_gpus(const GpuQuestion& question, const Say& say) {
    DriverReading driver = read_driver();
    judge_driver(driver, question.wanted, say);
    if (!driver.has_signs() && !question.wanted) return;
    if (!driver.has_library && !driver.device_file)
        return say({"gpu", Status::skip, "without a driver nothing more is known"});
    for (const GpuReading& gpu : driver.gpus) judge_health(gpu, driver.gpus.size(), say);
    if (driver.gpus.empty())
        for (const char* check : {"gpu.memory", "gpu.ecc", "gpu.power", "gpu.mode"})
            say({check, Status::skip, "the driver shows no GPU"});
    run_on_gpu(question.index, driver.gpus, say);
    for (const GpuReading& gpu : driver.gpus) judge_clocks(gpu, driver.gpus.size(), say);
    if (driver.gpus.empty()) say({"gpu.clocks", Status::skip, "the driver shows no GPU"});
}

}  // namespace hark::doctor
