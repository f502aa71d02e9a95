// The program's one target as libFuzzer calls it.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "fuzz/heap_peak.h"
#include "fuzz/target.h"

using hark::fuzz::HeapPeak;
using hark::fuzz::Target;

// Writes the target's seeds to the first directory that libFuzzer is given.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
    for (int i = 1; i < *argc; ++i) {
        const std::filesystem::path directory = (*argv)[i];
        if ((*argv)[i][0] == '-' || !std::filesystem::is_directory(directory)) continue;
        int count = 0;
        for (const std::string& seed : Target::all().at(0).seeds())
            std::ofstream(directory / ("seed_" + std::to_string(count++)), std::ios::binary)
                << seed;
        break;
    }
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const Target& target = Target::all()[0];
    // The first input makes what a target keeps: its memory is not counted.
    static const bool counts_heap = [&] {
        target.input(data, size);
        return HeapPeak::install();
    }();
    const HeapPeak heap;
    const int result = target.input(data, size);
    if (counts_heap && heap.beyond(size) > target.allowance) {
        std::fprintf(stderr, "fuzz: the input took %lld bytes of the heap\n",
                     static_cast<long long>(heap.bytes()));
        std::abort();
    }
    return result;
}
