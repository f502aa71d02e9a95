// What is known of GPUs by their names: the limits of their data sheets.
#pragma once

#include <span>
#include <string_view>

namespace hark {

struct KnownGpu {
    const char* name;          // "h100-pcie"
    const char* drivers_name;  // "NVIDIA H100 PCIe"
    int capability;            // ten times its compute capability: 90
    double bf16_tflops;        // of dense products
    double memory_gb_per_s;    // read or written
    double link_gb_per_s;      // to the host, in one direction
    double memory_gb;
    double watts;
};

// A few ten, in the order of gpus.def.
std::span<const KnownGpu> known_gpus();

// The GPU that the driver calls so; nullptr if it is not known, as a part of one (MIG) is not.
const KnownGpu* find_gpu(std::string_view drivers_name);

}  // namespace hark
