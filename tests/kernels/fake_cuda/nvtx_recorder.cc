// A profiler as NVTX loads it from NVTX_INJECTION64_PATH: writes to stdout the ranges that it is
// told of.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>

namespace {

// Depths of the open range, which NVTX returns.
int depth = 0;

int push(const char* name) {
    std::printf("push %s\n", name);
    std::fflush(stdout);
    return depth++;
}

int pop() {
    std::puts("pop");
    std::fflush(stdout);
    return --depth;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t tables) {
    const auto* callbacks =
        static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
    NvtxFunctionTable functions = nullptr;
    unsigned int count = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &count) ||
        count <= NVTX_CBID_CORE_RangePop)
        return 0;
    *functions[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
    *functions[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
    return 1;
}
