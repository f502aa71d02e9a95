#include <algorithm>

#include "core/error.h"
#include "operations/doctor/gpu.h"

namespace hark::doctor {
namespace {

// hark's CUDA library is built by CUDA 12.4 or newer, whose code every driver for 12.0 runs.
// Source: docs.nvidia.com/deploy/cuda-compatibility, minor version compatibility.
constexpr int kOldestCuda = 12000;
constexpr const char* kNewDriver =
    "install NVIDIA's driver 525.60 or newer; for a hark built by CUDA 13, 580.65 or newer";

std::string cuda_text(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

std::string watts(unsigned milliwatts) { return figure(milliwatts * 1e-3) + " W"; }

// "GPU 3: " if there are several.
std::string of_gpu(const GpuReading& gpu, size_t gpus) {
    return gpus > 1 ? concat("GPU ", gpu.index, ": ") : "";
}

std::string smi(const GpuReading& gpu, const char* arguments) {
    return concat("nvidia-smi -i ", gpu.index, " ", arguments);
}

// The driver's library is missing.
Finding without_library(const DriverReading& driver, bool wanted) {
    const char* const install =
        "install NVIDIA's driver; for a container start it by docker run --gpus all";
    if (driver.device_file)
        return {"gpu.driver", Status::fail,
                "/dev/nvidiactl exists, but libnvidia-ml.so.1 cannot be loaded", install};
    // Without a driver the tools compute on the CPU, unless they are told otherwise.
    if (driver.bus_gpus > 0)
        return {"gpu.driver", wanted ? Status::fail : Status::warn,
                "an NVIDIA GPU is on the PCI bus, but there is no driver for it", install};
    return {"gpu.driver", Status::fail, "there is no NVIDIA GPU, or no driver", install};
}

Finding not_started(const DriverReading& driver) {
    constexpr int kNoPermission = 4, kNotLoaded = 9, kMismatch = 18;
    const std::string text =
        concat("the driver's library says: ",
               driver.status_text.empty() ? concat("error ", driver.status) : driver.status_text);
    std::string remedy = "look for NVRM and Xid in dmesg";
    if (driver.status == kMismatch)
        remedy = "the driver was updated while it ran: restart the machine";
    else if (driver.status == kNotLoaded)
        remedy = "modprobe nvidia; if that fails, install the driver again";
    else if (driver.status == kNoPermission || (driver.device_file && !driver.device_opens))
        remedy = "sudo usermod -aG video,render \"$USER\", then log in again";
    return {"gpu.driver", Status::fail, text, remedy};
}

Finding memory_of(const GpuReading& gpu, const std::string& of) {
    if (!gpu.memory || !gpu.free_memory)
        return {"gpu.memory", Status::skip, of + "not told by the driver"};
    const double free = static_cast<double>(*gpu.free_memory);
    const double all = static_cast<double>(*gpu.memory);
    const bool taken = free < 0.5 * all;
    return {"gpu.memory",
            taken ? Status::warn : Status::ok,
            concat(of, size_text(free), " of ", size_text(all), " free"),
            taken ? "end the programs that nvidia-smi lists, or take another GPU (--device cuda:N)"
                  : "",
            free * 1e-9,
            "GB"};
}

Finding ecc_of(const GpuReading& gpu, const std::string& of) {
    if (!gpu.ecc && !gpu.uncorrected)
        return {"gpu.ecc", Status::skip, of + "not told; this GPU may have no ECC"};
    Finding finding{"gpu.ecc", Status::ok, of + (gpu.ecc.value_or(true) ? "on" : "off")};
    if (gpu.uncorrected) {
        finding.value = static_cast<double>(*gpu.uncorrected);
        finding.unit = "errors";
        finding.text += concat("; ", *gpu.uncorrected, " uncorrected errors");
    }
    if (gpu.remap_failed.value_or(false)) {
        finding.status = Status::fail;
        finding.text += "; a broken row of memory could not be replaced";
        finding.remedy = "replace this GPU, or give the machine back";
    } else if (gpu.uncorrected.value_or(0) > 0) {
        finding.status = Status::fail;
        finding.remedy = smi(gpu, "--gpu-reset; if they come back, replace this GPU");
    } else if (gpu.remap_pending.value_or(false)) {
        finding.status = Status::warn;
        finding.text += "; a row of memory is replaced at the next reset";
        finding.remedy = smi(gpu, "--gpu-reset");
    }
    return finding;
}

Finding power_of(const GpuReading& gpu, const std::string& of) {
    if (!gpu.power_limit) return {"gpu.power", Status::skip, of + "not told by the driver"};
    Finding finding{"gpu.power",
                    Status::ok,
                    concat(of, "limit ", watts(*gpu.power_limit)),
                    "",
                    *gpu.power_limit * 1e-3,
                    "W"};
    if (gpu.usual_power_limit && *gpu.power_limit < *gpu.usual_power_limit) {
        finding.status = Status::warn;
        finding.text += concat(", below this GPU's default of ", watts(*gpu.usual_power_limit));
        finding.remedy = smi(gpu, concat("-pl ", *gpu.usual_power_limit / 1000).c_str());
    }
    return finding;
}

Finding mode_of(const GpuReading& gpu, const std::string& of) {
    constexpr unsigned kProhibited = 2, kExclusive = 3;
    if (!gpu.compute_mode && !gpu.persistence)
        return {"gpu.mode", Status::skip, of + "not told by the driver"};
    Finding finding{"gpu.mode", Status::ok, of};
    if (gpu.mig.value_or(false)) finding.text += "divided (MIG); ";
    const unsigned mode = gpu.compute_mode.value_or(0);
    if (mode == kProhibited) {
        finding.status = Status::fail;
        finding.text += "no program may compute (compute mode Prohibited)";
        finding.remedy = smi(gpu, "-c DEFAULT");
    } else if (mode == kExclusive) {
        finding.status = Status::warn;
        finding.text += "one process at a time (Exclusive_Process): two stages of a pipe are two";
        finding.remedy = smi(gpu, "-c DEFAULT");
    } else if (!gpu.persistence.value_or(true)) {
        finding.status = Status::warn;
        finding.text += "persistence mode is off: each start takes seconds longer";
        finding.remedy = smi(gpu, "-pm 1");
    } else {
        finding.text += "for all processes";
    }
    return finding;
}

// What a figure of the run says next to `limit`, the data sheet's, of which `usual` is the least
// that a sound GPU has reached.
Finding against(const char* check, const std::string& text, const std::optional<double>& found,
                const char* unit, double limit, double usual, const GpuSpeedReading& reading,
                const char* remedy) {
    if (!found)
        return {check, Status::skip,
                concat("not measured", reading.why_not.empty() ? "" : ": ", reading.why_not)};
    Finding finding{check, Status::ok, text, "", found, unit};
    if (limit <= 0) {
        finding.text += concat("; what is usual for ", reading.name, " is not known");
    } else if (*found < usual * limit) {
        finding.status = Status::warn;
        finding.text += concat("; usual is ", figure(usual * limit), " at least");
        finding.remedy = remedy;
    }
    return finding;
}

}  // namespace

void judge_driver(const DriverReading& driver, bool wanted, const Say& say) {
    if (!driver.has_signs() && !wanted)
        return say({"gpu", Status::skip, "no NVIDIA GPU and no driver: hark computes on the CPU"});
    if (!driver.has_library) return say(without_library(driver, wanted));
    if (driver.status != 0) return say(not_started(driver));
    Finding finding{
        "gpu.driver", Status::ok,
        concat("NVIDIA ", driver.version.empty() ? "(version not told)" : driver.version)};
    if (driver.cuda) {
        finding.text += concat(", for CUDA up to ", cuda_text(*driver.cuda));
        finding.value = *driver.cuda / 1000 + *driver.cuda % 1000 / 10 * 0.1;
        finding.unit = "CUDA";
    }
    for (const GpuReading& gpu : driver.gpus)
        finding.text += concat(gpu.index == driver.gpus.front().index ? "; " : ", ", gpu.name);
    if (driver.gpus.empty()) {
        finding.status = Status::fail;
        finding.text += "; it finds no GPU";
        finding.remedy = "docker run --gpus all; else look for NVRM and Xid in dmesg";
    } else if (driver.cuda && *driver.cuda < kOldestCuda) {
        finding.status = Status::fail;
        finding.text += concat("; hark needs a driver for CUDA ", cuda_text(kOldestCuda));
        finding.remedy = kNewDriver;
    }
    say(finding);
}

void judge_health(const GpuReading& gpu, size_t gpus, const Say& say) {
    const std::string of = of_gpu(gpu, gpus);
    say(memory_of(gpu, of));
    say(ecc_of(gpu, of));
    say(power_of(gpu, of));
    say(mode_of(gpu, of));
}

void judge_clocks(const GpuReading& gpu, size_t gpus, const Say& say) {
    const std::string of = of_gpu(gpu, gpus);
    if (!gpu.limits || !gpu.clock)
        return say({"gpu.clocks", Status::skip, of + "not told by the driver"});
    Finding finding{"gpu.clocks",
                    Status::ok,
                    concat(of, *gpu.clock, " MHz"),
                    "",
                    static_cast<double>(*gpu.clock),
                    "MHz"};
    if (gpu.highest_clock) finding.text += concat(" of ", *gpu.highest_clock);
    if (gpu.celsius) finding.text += concat(", ", *gpu.celsius, " degrees");
    if (gpu.power) finding.text += ", " + watts(*gpu.power);
    finding.text += gpu.loaded ? " under load" : ", without load";
    const uint64_t limits = *gpu.limits;
    if (limits & (kSoftwareHeat | kHardwareHeat)) {
        finding.status = Status::warn;
        finding.text += "; slowed down by heat";
        finding.remedy = "look at fans, dust and the room's air; of a rented machine take another";
    } else if (limits & (kHardwareSlowdown | kPowerBrake)) {
        finding.status = Status::warn;
        finding.text += "; slowed down by the power supply or a fault";
        finding.remedy = "look at the power cables and supply; of a rented machine take another";
    } else if (gpu.highest_clock && gpu.application_clock &&
               *gpu.application_clock < *gpu.highest_clock / 2) {
        finding.status = Status::warn;
        finding.text +=
            concat("; its application clock is set to ", *gpu.application_clock, " MHz");
        finding.remedy = smi(gpu, "-rac");
    } else if (limits & kPowerCap) {
        finding.text += "; at its power limit, as usual for products";
    }
    say(finding);
}

void judge_speed(const GpuSpeedReading& reading, const Say& say) {
    const KnownGpu* const known = find_gpu(reading.name);
    const auto shown = [](const std::optional<double>& value) { return figure(value.value_or(0)); };
    // A virtual machine's link gives half of the sheet's rate; the slower direction counts.
    std::optional<double> link;
    if (reading.to_gpu && reading.from_gpu) link = std::min(*reading.to_gpu, *reading.from_gpu);
    say(against(
        "gpu.transfer",
        concat(shown(reading.to_gpu), " GB/s to the GPU, ", shown(reading.from_gpu), " from it"),
        link, "GB/s", known ? known->link_gb_per_s : 0, 0.4, reading,
        "the slot, a riser or the virtual machine gives it few PCIe lanes"));
    say(against("gpu.copy", concat(shown(reading.copy), " GB/s read and written by a copy"),
                reading.copy, "GB/s", known ? known->memory_gb_per_s : 0, 0.65, reading,
                "see gpu.clocks and gpu.memory; other programs may be using it"));
    say(against("gpu.product", concat(shown(reading.product), " TFLOP/s of bf16 products"),
                reading.product, "TFLOP/s", known ? known->bf16_tflops : 0, 0.45, reading,
                "see gpu.clocks, gpu.power and gpu.memory; other programs may be using it"));
}

Finding library_failure(const PluginError& why) {
    Finding finding = failure("gpu.library", why.what());
    switch (why.problem()) {
        case PluginProblem::missing:
            finding.remedy =
                "install the package hark-cuda, or build hark where CUDA's compiler nvcc is "
                "installed";
            break;
        case PluginProblem::unloadable:
            finding.remedy = "install CUDA's cuBLAS, or add its folder to LD_LIBRARY_PATH";
            break;
        case PluginProblem::other_build:
            break;  // the message's own
    }
    return finding;
}

StartError start_error(int status) {
    // Source: docs.nvidia.com/cuda/cuda-driver-api, CUresult.
    switch (status) {
        case 100:
            return {"CUDA finds no GPU",
                    "look at CUDA_VISIBLE_DEVICES; start a container by docker run --gpus all"};
        case 101:
            return {"CUDA has no GPU of this number", "nvidia-smi -L lists them, from 0 on"};
        case 802:
            return {"the GPU's system is not ready (CUDA error 802)",
                    "systemctl restart nvidia-fabricmanager; of a rented machine take another"};
        case 803:
            return {"driver and library are of different versions (CUDA error 803)",
                    "restart the machine, or remove the other libcuda.so.1"};
        case 999:
            return {
                "the driver does not start (CUDA error 999)",
                "look for NVRM and Xid in dmesg; modprobe -r nvidia_uvm && modprobe nvidia_uvm"};
        default:
            return {concat("the driver does not start (CUDA error ", status, ")"),
                    "look for NVRM and Xid in dmesg"};
    }
}

}  // namespace hark::doctor
