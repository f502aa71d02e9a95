// NVIDIA's management library, opened when it is needed: the driver brings it.
#pragma once

#include <string>

#include "operations/doctor/gpu.h"

namespace hark::doctor {

// A moment of a GPU. Without a value: it does not tell.
struct GpuSample {
    int index = 0;
    std::optional<unsigned> busy;         // % of the last moments in which a kernel ran
    std::optional<unsigned> power;        // mW
    std::optional<unsigned> clock;        // of the multiprocessors, MHz
    std::optional<uint64_t> limits;       // of the clocks, ClockLimit's bits
    std::optional<uint64_t> energy;       // mJ since the driver's start
    std::optional<uint64_t> used_memory;  // bytes
};

// What the functions are called with: docs.nvidia.com/deploy/nvml-api.
class Nvml {
  public:
    // Opens and starts it.
    Nvml();
    ~Nvml();
    Nvml(const Nvml&) = delete;

    bool is_open() const { return library_ != nullptr; }
    int status() const { return status_; }  // of the start; 0: the rest may be called
    std::string status_text() const;
    std::string driver_version() const;
    std::optional<int> cuda_version() const;
    std::vector<GpuReading> gpus() const;
    std::vector<GpuSample> sample() const;
    // Clock, limits, heat and power of the GPU on that bus.
    void read_load(GpuReading& gpu, const std::string& bus) const;

  private:
    using Device = void*;
    struct Memory {  // bytes
        unsigned long long total, free, used;
    };
    // Calls a function that may be missing or not supported; whether it gave something.
    template <class... Arguments>
    bool call(const char* name, Arguments... arguments) const;
    template <class Value>
    std::optional<Value> number(const char* name, Device device) const;
    std::vector<Device> devices() const;
    std::optional<unsigned> clock(Device device) const;  // of the multiprocessors, MHz
    std::optional<Memory> memory(Device device) const;
    std::optional<uint64_t> clock_limits(Device device) const;
    GpuReading read(Device device, int index) const;
    void read_load(GpuReading& gpu, Device device) const;

    void* library_ = nullptr;
    int status_ = 0;
    std::vector<Device> devices_;  // in nvidia-smi's order; null: it cannot be reached
};

}  // namespace hark::doctor
