#include "operations/gpus.h"

namespace hark {
namespace {

constexpr KnownGpu kKnownGpus[] = {
#define HARK_GPU(NAME, DRIVERS_NAME, CAPABILITY, BF16, COPY, LINK, MEMORY, WATTS) \
    {NAME, DRIVERS_NAME, CAPABILITY, BF16, COPY, LINK, MEMORY, WATTS},
#include "operations/gpus.def"
#undef HARK_GPU
};

}  // namespace

std::span<const KnownGpu> known_gpus() { return kKnownGpus; }

const KnownGpu* find_gpu(std::string_view drivers_name) {
    for (const KnownGpu& gpu : kKnownGpus)
        if (gpu.drivers_name == drivers_name) return &gpu;
    return nullptr;
}

}  // namespace hark
