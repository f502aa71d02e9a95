// Writes the target's seeds to the first directory that libFuzzer is given.
#include <filesystem>
#include <fstream>

#include "fuzz/seeds.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
    for (int i = 1; i < *argc; ++i) {
        const std::filesystem::path directory = (*argv)[i];
        if ((*argv)[i][0] == '-' || !std::filesystem::is_directory(directory)) continue;
        int count = 0;
        for (const std::string& seed : hark::fuzz::fuzz_seeds())
            std::ofstream(directory / ("seed_" + std::to_string(count++)), std::ios::binary)
                << seed;
        break;
    }
    return 0;
}
