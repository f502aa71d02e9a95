// The program's one target as libFuzzer calls it.
#include <filesystem>
#include <fstream>

#include "fuzz/target.h"

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
    return Target::all()[0].input(data, size);
}
