// NVIDIA's GPUs: the driver, their health, and what a run on one of them gave.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernels/runtime/plugin.h"
#include "operations/doctor/finding.h"
#include "operations/gpus.h"

namespace hark::doctor {

// What the management library says of a GPU. Without a value: it does not tell.
struct GpuReading {
    int index = 0;                                 // nvidia-smi's
    std::string name;                              // "NVIDIA H200"
    std::string bus;                               // "00000000:1B:00.0"
    std::optional<uint64_t> memory, free_memory;   // bytes
    std::optional<unsigned> clock, highest_clock;  // of the multiprocessors, MHz
    std::optional<unsigned> application_clock;     // that nvidia-smi -ac has set, MHz
    std::optional<uint64_t> limits;                // of the clocks, ClockLimit's bits
    std::optional<unsigned> celsius;
    std::optional<unsigned> power, power_limit, usual_power_limit;  // mW
    std::optional<bool> ecc;                                        // is on
    std::optional<uint64_t> uncorrected;              // ECC errors since the driver's start
    std::optional<bool> remap_pending, remap_failed;  // of rows with errors
    std::optional<bool> persistence, mig;
    std::optional<unsigned> compute_mode;  // 0 for all, 2 for none, 3 for one process
    bool loaded = false;  // clock, limits, heat and power are of a moment under load
};

// Bits of why a clock is not higher.
// Source: docs.nvidia.com/deploy/nvml-api, NvmlClocksEventReasons.
enum ClockLimit : uint64_t {
    kIdle = 0x1,
    kApplicationClocks = 0x2,
    kPowerCap = 0x4,
    kHardwareSlowdown = 0x8,
    kSoftwareHeat = 0x20,
    kHardwareHeat = 0x40,
    kPowerBrake = 0x80,
};

struct DriverReading {
    int bus_gpus = 0;           // NVIDIA's display and 3D controllers on the PCI bus
    bool device_file = false;   // /dev/nvidiactl exists
    bool device_opens = false;  // and this user may open it
    bool has_library = false;   // libnvidia-ml.so.1 is there
    int status = 0;             // of its start: 0, 9, 18, ...
    std::string status_text;    // "Driver/library version mismatch"
    std::string version;        // "580.105.08"; empty: not told
    std::optional<int> cuda;    // the newest CUDA that it runs: 13000 for 13.0
    std::vector<GpuReading> gpus;

    // Whether anything speaks for a GPU in this machine: the library alone, which says that no
    // driver is loaded, does not.
    bool has_signs() const {
        constexpr int kNotLoaded = 9;
        return bus_gpus > 0 || device_file || (has_library && status != kNotLoaded);
    }
};
// Loads libnvidia-ml.so.1, which the driver brings. `root` has sys and dev.
DriverReading read_driver(const std::filesystem::path& root = "/");

// gpu.driver, or gpu, for all of them, if nothing speaks for a GPU. `wanted`: --device asks for
// one, so that its absence is a failure.
void judge_driver(const DriverReading& reading, bool wanted, const Say& say);
// gpu.memory, gpu.ecc, gpu.power, gpu.mode
void judge_health(const GpuReading& gpu, size_t gpus, const Say& say);
// gpu.clocks
void judge_clocks(const GpuReading& gpu, size_t gpus, const Say& say);

// What products and copies gave. Without a value: not measured.
struct GpuSpeedReading {
    std::string name;                              // as the driver calls it
    std::optional<double> to_gpu, from_gpu, copy;  // GB/s
    std::optional<double> product;                 // TFLOP/s, bf16
    std::string why_not;                           // why something was not measured
};
// gpu.transfer, gpu.copy, gpu.product: against what is usual for this GPU (operations/gpus.h).
void judge_speed(const GpuSpeedReading& reading, const Say& say);

// The error of the CUDA driver's start, by its number; the remedy is "" for one that has none.
struct StartError {
    std::string text, remedy;
};
StartError start_error(int status);

// gpu.library: why libhark-cuda.so cannot be used.
Finding library_failure(const PluginError& why);

// All checks of gpu.*: the driver, each GPU's health, and a run on GPU `index`, CUDA's count.
struct GpuQuestion {
    bool wanted = false;
    int index = 0;
};
void check_gpus(const GpuQuestion& question, const Say& say);

}  // namespace hark::doctor
