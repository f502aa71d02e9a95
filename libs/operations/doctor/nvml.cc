#include "operations/doctor/nvml.h"

#include <dlfcn.h>

namespace hark::doctor {

constexpr int kMultiprocessors = 1, kOnDie = 0;  // kinds of clocks and of sensors

// A status is 0 if all went well; 3: not supported.
template <class... Arguments>
bool Nvml::call(const char* name, Arguments... arguments) const {
    void* const address = library_ ? ::dlsym(library_, name) : nullptr;
    return address && reinterpret_cast<int (*)(Arguments...)>(address)(arguments...) == 0;
}

template <class Value>
std::optional<Value> Nvml::number(const char* name, Device device) const {
    Value value{};
    return call(name, device, &value) ? std::optional(value) : std::nullopt;
}

Nvml::Nvml() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) return;
    const auto start = reinterpret_cast<int (*)()>(::dlsym(library_, "nvmlInit_v2"));
    constexpr int kFunctionNotFound = 13;
    status_ = start ? start() : kFunctionNotFound;
    if (status_ == 0) devices_ = devices();
}

Nvml::~Nvml() {
    if (library_ && status_ == 0) call("nvmlShutdown");
    if (library_) ::dlclose(library_);
}

std::string Nvml::status_text() const {
    void* const address = library_ ? ::dlsym(library_, "nvmlErrorString") : nullptr;
    if (!address) return "";
    const char* const text = reinterpret_cast<const char* (*)(int)>(address)(status_);
    return text ? text : "";
}

std::string Nvml::driver_version() const {
    char text[80] = "";
    return call("nvmlSystemGetDriverVersion", text, unsigned{sizeof text}) ? text : "";
}

std::optional<int> Nvml::cuda_version() const {
    int version = 0;
    if (!call("nvmlSystemGetCudaDriverVersion_v2", &version)) return std::nullopt;
    return version;
}

std::vector<Nvml::Device> Nvml::devices() const {
    unsigned count = 0;
    std::vector<Device> devices;
    if (!call("nvmlDeviceGetCount_v2", &count)) return devices;
    for (unsigned i = 0; i < count; ++i) {
        Device device = nullptr;
        devices.push_back(call("nvmlDeviceGetHandleByIndex_v2", i, &device) ? device : nullptr);
    }
    return devices;
}

std::vector<GpuReading> Nvml::gpus() const {
    std::vector<GpuReading> gpus;
    for (size_t i = 0; i < devices_.size(); ++i)
        if (devices_[i]) gpus.push_back(read(devices_[i], static_cast<int>(i)));
    return gpus;
}

std::vector<GpuSample> Nvml::sample() const {
    std::vector<GpuSample> samples;
    for (size_t i = 0; i < devices_.size(); ++i) {
        const Device device = devices_[i];
        if (!device) continue;
        GpuSample gpu{.index = static_cast<int>(i)};
        struct {
            unsigned gpu, memory;
        } busy{};
        if (call("nvmlDeviceGetUtilizationRates", device, &busy)) gpu.busy = busy.gpu;
        gpu.clock = clock(device);
        gpu.power = number<unsigned>("nvmlDeviceGetPowerUsage", device);
        gpu.limits = clock_limits(device);
        gpu.energy = number<unsigned long long>("nvmlDeviceGetTotalEnergyConsumption", device);
        if (const std::optional<Memory> bytes = memory(device)) gpu.used_memory = bytes->used;
        samples.push_back(gpu);
    }
    return samples;
}

void Nvml::read_load(GpuReading& gpu, const std::string& bus) const {
    Device device = nullptr;
    if (call("nvmlDeviceGetHandleByPciBusId_v2", bus.c_str(), &device)) {
        read_load(gpu, device);
        gpu.loaded = true;
    }
}

void Nvml::read_load(GpuReading& gpu, Device device) const {
    unsigned celsius = 0;
    gpu.clock = clock(device);
    gpu.celsius = std::nullopt;
    if (call("nvmlDeviceGetTemperature", device, kOnDie, &celsius)) gpu.celsius = celsius;
    gpu.power = number<unsigned>("nvmlDeviceGetPowerUsage", device);
    gpu.limits = clock_limits(device);
}

std::optional<unsigned> Nvml::clock(Device device) const {
    unsigned clock = 0;
    return call("nvmlDeviceGetClockInfo", device, kMultiprocessors, &clock) ? std::optional(clock)
                                                                            : std::nullopt;
}

std::optional<Nvml::Memory> Nvml::memory(Device device) const {
    return number<Memory>("nvmlDeviceGetMemoryInfo", device);
}

std::optional<uint64_t> Nvml::clock_limits(Device device) const {
    using Bits = unsigned long long;
    std::optional<Bits> limits = number<Bits>("nvmlDeviceGetCurrentClocksEventReasons", device);
    if (!limits)  // drivers before 535
        limits = number<Bits>("nvmlDeviceGetCurrentClocksThrottleReasons", device);
    return limits;
}

GpuReading Nvml::read(Device device, int index) const {
    GpuReading gpu{.index = index};
    char name[96] = "";
    if (call("nvmlDeviceGetName", device, name, unsigned{sizeof name})) gpu.name = name;
    struct {
        char legacy_bus[16];
        unsigned domain, bus, device, device_id, subsystem_id;
        char bus_id[32];
    } pci{};
    if (call("nvmlDeviceGetPciInfo_v3", device, &pci)) gpu.bus = pci.bus_id;
    if (const std::optional<Memory> bytes = memory(device)) {
        gpu.memory = bytes->total;
        gpu.free_memory = bytes->free;
    }
    unsigned clock = 0;
    if (call("nvmlDeviceGetMaxClockInfo", device, kMultiprocessors, &clock))
        gpu.highest_clock = clock;
    if (call("nvmlDeviceGetApplicationsClock", device, kMultiprocessors, &clock))
        gpu.application_clock = clock;
    gpu.power_limit = number<unsigned>("nvmlDeviceGetEnforcedPowerLimit", device);
    gpu.usual_power_limit = number<unsigned>("nvmlDeviceGetPowerManagementDefaultLimit", device);
    int current = 0, pending = 0;
    if (call("nvmlDeviceGetEccMode", device, &current, &pending)) gpu.ecc = current != 0;
    constexpr int kUncorrected = 1, kSinceStart = 0;
    unsigned long long errors = 0;
    if (call("nvmlDeviceGetTotalEccErrors", device, kUncorrected, kSinceStart, &errors))
        gpu.uncorrected = errors;
    unsigned rows_corrected = 0, rows_uncorrected = 0, is_pending = 0, has_failed = 0;
    if (call("nvmlDeviceGetRemappedRows", device, &rows_corrected, &rows_uncorrected, &is_pending,
             &has_failed)) {
        gpu.remap_pending = is_pending != 0;
        gpu.remap_failed = has_failed != 0;
    }
    if (const auto on = number<int>("nvmlDeviceGetPersistenceMode", device))
        gpu.persistence = *on != 0;
    if (const auto mode = number<int>("nvmlDeviceGetComputeMode", device))
        gpu.compute_mode = static_cast<unsigned>(*mode);
    unsigned mig = 0, mig_pending = 0;
    if (call("nvmlDeviceGetMigMode", device, &mig, &mig_pending)) gpu.mig = mig != 0;
    read_load(gpu, device);
    return gpu;
}

}  // namespace hark::doctor
