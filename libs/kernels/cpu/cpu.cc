#include "kernels/cpu/cpu.h"

#include <vector>

namespace hark {

extern const CpuKernels kPlainKernels;
#ifdef HARK_X86
extern const CpuKernels kAvx2Kernels;
extern const CpuKernels kAvx512Kernels;
extern const ByteKernels kVnniKernels;
extern const PanelKernels kVnniPanels;
extern const TileKernels kVnniTiles;
extern const IntegerAttention kVnniAttention;
extern const TileKernels kAmxTiles;
extern const SplitKernels kAmxSplits;
bool may_use_tiles();
#endif
#ifdef HARK_ARM64
extern const CpuKernels kNeonKernels;
#endif

namespace {

// Tables live as long as the process. The flags are those of the processor that it runs on.
const std::vector<CpuKernels>& supported() {
    static const std::vector<CpuKernels> list = [] {
        std::vector<CpuKernels> found = {kPlainKernels};
#ifdef HARK_X86
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("f16c"))
            found.push_back(kAvx2Kernels);
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
            found.push_back(kAvx512Kernels);
            found.back().has_bf16 = __builtin_cpu_supports("avx512bf16");
            found.back().has_int8 = __builtin_cpu_supports("avx512vnni");
        }
        if (found.back().has_int8) {
            found.push_back(found.back());
            found.back().name = "avx512_vnni";
            found.back().bytes = &kVnniKernels;
            found.back().panels = &kVnniPanels;
            found.back().tiles = &kVnniTiles;
            found.back().integer_attention = &kVnniAttention;
            if (__builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") &&
                may_use_tiles()) {
                found.push_back(found.back());
                found.back().name = "avx512_amx";
                found.back().tiles = &kAmxTiles;
                if (__builtin_cpu_supports("amx-bf16")) found.back().splits = &kAmxSplits;
            }
        }
#endif
#ifdef HARK_ARM64
        found.push_back(kNeonKernels);
#endif
        return found;
    }();
    return list;
}

const CpuKernels*& used() {
    static const CpuKernels* kernels = &supported().back();
    return kernels;
}

}  // namespace

const CpuKernels& cpu_kernels() { return *used(); }

void use_cpu_kernels(const CpuKernels& kernels) { used() = &kernels; }

std::span<const CpuKernels* const> all_cpu_kernels() {
    static const std::vector<const CpuKernels*> list = [] {
        std::vector<const CpuKernels*> pointers;
        for (const CpuKernels& kernels : supported()) pointers.push_back(&kernels);
        return pointers;
    }();
    return list;
}

}  // namespace hark
