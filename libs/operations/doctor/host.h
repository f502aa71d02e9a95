// The processor, the memory and the limits of this process: what was read, and what follows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "operations/doctor/finding.h"

namespace hark::doctor {

struct CpuReading {
    std::string architecture;         // "x86_64"
    std::string model;                // "AMD EPYC 7763"; empty: not told
    std::string kernels;              // of CpuKernels: "plain", "avx2", "avx512", "neon"
    int online = 0;                   // cores of the machine
    int affinity = 0;                 // of those, the cores that this process may use
    std::optional<int> quota;         // cores of the cgroup's CPU quota, rounded up
    std::optional<double> throttled;  // seconds that the quota has stopped this cgroup
    std::string governor, frequency_driver;  // of the first core; empty: not told
    std::optional<double> pressure;  // % of the last 10 s in which some thread waited for a core
};
// `root` has proc and sys.
CpuReading read_cpu(const std::filesystem::path& root = "/");
// cpu.features, cpu.cores, cpu.governor, cpu.busy
void judge_cpu(const CpuReading& reading, const Say& say);

// In bytes.
struct MemoryReading {
    std::optional<int64_t> total, available;  // of the machine
    std::optional<int64_t> limit;             // of the cgroup
    std::optional<double> pressure;  // % of the last 10 s in which some thread waited for memory
};
MemoryReading read_memory(const std::filesystem::path& root = "/");
// memory.available, memory.limit, memory.pressure
void judge_memory(const MemoryReading& reading, const Say& say);

// GB/s that all cores read, by operations/speed. It says how fast a language model can be.
void judge_bandwidth(double gb_per_s, int threads, const Say& say);

// Limits of the shell's ulimit; none: unlimited.
struct LimitsReading {
    std::optional<uint64_t> files, processes;
    std::optional<uint64_t> address_space, file_size;  // bytes
};
LimitsReading read_limits();
// limits.files, limits.processes, limits.memory, limits.file-size
void judge_limits(const LimitsReading& reading, const Say& say);

struct SandboxReading {
    long landlock = 0;    // its ABI; 0: there is none
    std::string lacking;  // what the kernel lacks of the decoders' sandbox; empty if nothing
};
// Puts this process into the sandbox of audio-decode: it can open no file any more.
SandboxReading read_sandbox();
// sandbox
void judge_sandbox(const SandboxReading& reading, const Say& say);

struct LocaleReading {
    std::string name;     // of LC_ALL, LC_CTYPE or LANG; empty: none is set
    bool exists = true;   // the system knows it
    std::string codeset;  // "UTF-8", "ANSI_X3.4-1968"
};
LocaleReading read_locale();
// locale
void judge_locale(const LocaleReading& reading, const Say& say);

}  // namespace hark::doctor
