#include "operations/doctor/host.h"

#include <langinfo.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <clocale>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "core/error.h"
#include "core/machine/cgroup.h"
#include "core/machine/cores.h"
#include "core/sandbox/landlock.h"
#include "core/sandbox/sandbox.h"
#include "kernels/cpu/cpu.h"

namespace hark::doctor {
namespace {

namespace fs = std::filesystem;

// What follows "NAME:" in a file of such lines, without spaces around it; empty if it has no such.
std::string field_of(const fs::path& file, const std::string& name) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with(name)) continue;
        const size_t begin = line.find_first_not_of(" \t:", name.size());
        return begin == line.npos ? "" : line.substr(begin);
    }
    return "";
}

// Of "some avg10=1.50 avg60=..." the first figure.
std::optional<double> pressure_of(const fs::path& file) {
    const std::string line = first_line(file), key = "some avg10=";
    if (!line.starts_with(key)) return std::nullopt;
    return std::strtod(line.c_str() + key.size(), nullptr);
}

std::optional<double> throttled_seconds(const fs::path& root) {
    for (const CgroupFolder& folder : cgroup_folders("cpu", root)) {
        const char* const name = folder.v2 ? "throttled_usec" : "throttled_time";
        const auto time = positive_number(field_of(folder.path / "cpu.stat", name));
        if (time) return static_cast<double>(*time) * (folder.v2 ? 1e-6 : 1e-9);
    }
    return std::nullopt;
}

std::optional<int64_t> kibibytes(const std::string& text) {
    const auto number = positive_number(std::string_view(text).substr(0, text.find(' ')));
    return number ? std::optional(*number * 1024) : std::nullopt;
}

std::optional<uint64_t> limit_of(__rlimit_resource resource) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
    return limit.rlim_cur;
}

}  // namespace

CpuReading read_cpu(const fs::path& root) {
    CpuReading reading;
    utsname system{};
    if (::uname(&system) == 0) reading.architecture = system.machine;
    reading.model = field_of(root / "proc/cpuinfo", "model name");
    reading.kernels = cpu_kernels().name;
    reading.online = static_cast<int>(std::thread::hardware_concurrency());
    cpu_set_t set;
    const bool known = ::sched_getaffinity(0, sizeof set, &set) == 0;
    reading.affinity = known ? CPU_COUNT(&set) : reading.online;
    // Where the mask hides cores, the standard library counts those of the mask.
    std::ifstream in(root / "proc/stat");
    int counted = 0;
    for (std::string line; std::getline(in, line);)
        counted += line.starts_with("cpu") && line.size() > 3 && line[3] != ' ';
    if (counted > 0) reading.online = counted;
    reading.quota = cgroup_cores(root);
    reading.throttled = throttled_seconds(root);
    const fs::path frequency = root / "sys/devices/system/cpu/cpu0/cpufreq";
    reading.governor = first_line(frequency / "scaling_governor");
    reading.frequency_driver = first_line(frequency / "scaling_driver");
    reading.pressure = pressure_of(root / "proc/pressure/cpu");
    return reading;
}

MemoryReading read_memory(const fs::path& root) {
    const fs::path file = root / "proc/meminfo";
    return {.total = kibibytes(field_of(file, "MemTotal")),
            .available = kibibytes(field_of(file, "MemAvailable")),
            .limit = cgroup_memory(root),
            .pressure = pressure_of(root / "proc/pressure/memory")};
}

LimitsReading read_limits() {
    return {.files = limit_of(RLIMIT_NOFILE),
            .processes = limit_of(RLIMIT_NPROC),
            .address_space = limit_of(RLIMIT_AS),
            .file_size = limit_of(RLIMIT_FSIZE)};
}

SandboxReading read_sandbox() {
    const long version = landlock_version();
    return {version, enter_sandbox({})};
}

LocaleReading read_locale() {
    LocaleReading reading;
    for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        const char* const value = std::getenv(variable);
        if (value && *value && reading.name.empty()) reading.name = value;
    }
    reading.exists = std::setlocale(LC_CTYPE, "") != nullptr;
    reading.codeset = ::nl_langinfo(CODESET);
    std::setlocale(LC_CTYPE, "C");
    return reading;
}

}  // namespace hark::doctor
