#include <algorithm>

#include "core/error.h"
#include "operations/doctor/host.h"

namespace hark::doctor {
namespace {

constexpr double kFewBytes = 2e9;  // Whisper small in f32 takes half of it

Finding features(const CpuReading& cpu) {
    const std::string name = cpu.model.empty() ? cpu.architecture : cpu.model;
    Finding finding{"cpu.features", Status::ok, concat(name, ": kernels ", cpu.kernels)};
    if (cpu.kernels != "plain") return finding;
    finding.status = Status::warn;
    if (cpu.architecture == "x86_64") {
        finding.text += "; AVX2, FMA or F16C is missing, so the CPU takes several times as long";
        finding.remedy =
            "show a virtual machine the host's processor (QEMU: -cpu host), or take one with AVX2";
    } else {
        finding.text += "; there are none of this processor's own, so the CPU takes longer";
        finding.remedy = "use a GPU, or a processor of x86_64 with AVX2";
    }
    return finding;
}

Finding cores(const CpuReading& cpu) {
    const int usable = std::max(1, std::min(cpu.affinity, cpu.quota.value_or(cpu.affinity)));
    Finding finding{"cpu.cores",
                    Status::ok,
                    concat(usable, " of ", cpu.online, " cores"),
                    "",
                    static_cast<double>(usable),
                    "cores"};
    if (usable < cpu.affinity) {
        finding.status = Status::warn;
        finding.text += ": the cgroup's CPU quota";
        if (cpu.throttled)
            finding.text +=
                concat("; it has stopped this cgroup for ", figure(*cpu.throttled), " s");
        finding.remedy = concat("docker run --cpus ", cpu.affinity,
                                ", or the CPU limit of the pod or of the unit");
    } else if (usable < cpu.online) {
        finding.status = usable == 1 ? Status::warn : Status::ok;
        finding.text += ": the affinity mask";
        if (usable == 1) finding.remedy = "taskset, or docker run --cpuset-cpus";
    } else if (usable == 1) {
        finding.status = Status::warn;
        finding.text = "1 core, which the stages of a pipe share";
        finding.remedy = "take a machine with more cores";
    }
    return finding;
}

Finding governor(const CpuReading& cpu) {
    Finding finding{"cpu.governor", Status::ok,
                    concat(cpu.governor, " (", cpu.frequency_driver, ")")};
    if (cpu.governor.empty()) {
        finding.status = Status::skip;
        finding.text = "not reported by this virtual machine";
    } else if (cpu.governor == "powersave" && !cpu.frequency_driver.starts_with("intel_pstate") &&
               !cpu.frequency_driver.starts_with("amd-pstate-epp")) {
        // Of those two drivers powersave is the governor that raises clocks under load.
        finding.status = Status::warn;
        finding.text += ": the cores stay at their lowest clock";
        finding.remedy = "cpupower frequency-set -g performance";
    }
    return finding;
}

Finding busy(const CpuReading& cpu) {
    if (!cpu.pressure)
        return {"cpu.busy", Status::skip, "not told: this kernel has no /proc/pressure"};
    Finding finding{
        "cpu.busy",
        Status::ok,
        concat("threads waited for a core in ", figure(*cpu.pressure), "% of the last 10 s"),
        "",
        cpu.pressure,
        "%"};
    if (*cpu.pressure > 20) {
        finding.status = Status::warn;
        finding.remedy = "other programs are running: see top; measured speeds are too low";
    }
    return finding;
}

}  // namespace

void judge_cpu(const CpuReading& reading, const Say& say) {
    say(features(reading));
    say(cores(reading));
    say(governor(reading));
    say(busy(reading));
}

void judge_memory(const MemoryReading& memory, const Say& say) {
    const char* const remedy = "end other programs, or take a smaller or quantised model";
    if (!memory.available || !memory.total) {
        say({"memory.available", Status::skip, "not told: /proc/meminfo has no MemAvailable"});
    } else {
        const double free = static_cast<double>(*memory.available);
        const double total = static_cast<double>(*memory.total);
        const bool few = free < kFewBytes;
        say({"memory.available", few ? Status::warn : Status::ok,
             concat(size_text(free), " of ", size_text(total), " available"), few ? remedy : "",
             free * 1e-9, "GB"});
    }
    if (!memory.limit) {
        say({"memory.limit", Status::ok, "no cgroup limits it"});
    } else {
        const double limit = static_cast<double>(*memory.limit);
        const bool few = limit < kFewBytes;
        say({"memory.limit", few ? Status::warn : Status::ok,
             concat("the cgroup allows ", size_text(limit)),
             few ? "docker run --memory, or the memory limit of the pod or of the unit" : "",
             limit * 1e-9, "GB"});
    }
    if (!memory.pressure) {
        say({"memory.pressure", Status::skip, "not told: this kernel has no /proc/pressure"});
    } else {
        const bool waits = *memory.pressure > 10;
        say({"memory.pressure", waits ? Status::warn : Status::ok,
             concat("threads waited for memory in ", figure(*memory.pressure),
                    "% of the last 10 s"),
             waits ? remedy : "", memory.pressure, "%"});
    }
}

void judge_bandwidth(double gb_per_s, int threads, const Say& say) {
    const bool slow = gb_per_s < 5;  // half of one channel of DDR3-1333
    say({"memory.bandwidth", slow ? Status::warn : Status::ok,
         concat(figure(gb_per_s), " GB/s read by ", threads, threads == 1 ? " thread" : " threads",
                ": at most ", figure(gb_per_s), " tokens/s from a model of 1 GB"),
         slow ? "see cpu.busy and cpu.cores; a virtual machine may share its memory's channels"
              : "",
         gb_per_s, "GB/s"});
}

void judge_limits(const LimitsReading& limits, const Say& say) {
    // What a limit of fewer than `least` does; bytes or a count.
    const auto judge = [&](const char* check, const std::optional<uint64_t>& limit, uint64_t least,
                           bool bytes, const char* what, const char* remedy) {
        Finding finding{check, Status::ok, "unlimited"};
        if (limit) {
            finding.value = static_cast<double>(*limit);
            finding.unit = bytes ? "bytes" : "";
            finding.text = bytes ? size_text(*finding.value) : std::to_string(*limit);
        }
        if (limit && *limit < least) {
            finding.status = Status::warn;
            finding.text += what;
            finding.remedy = remedy;
        }
        say(finding);
    };
    judge("limits.files", limits.files, 1024, false,
          ": few open files for hark-serve's connections and gpt-train's shards", "ulimit -n 4096");
    judge("limits.processes", limits.processes, 256, false,
          ": threads count too, and each stage of a pipe starts one for each core",
          "ulimit -u unlimited");
    judge("limits.memory", limits.address_space, UINT64_MAX, true,
          " of address space; models are mapped, and a GPU's driver reserves far more",
          "ulimit -v unlimited");
    judge("limits.file-size", limits.file_size, UINT64_MAX, true,
          ": a longer output or download is cut off", "ulimit -f unlimited");
}

void judge_sandbox(const SandboxReading& reading, const Say& say) {
    Finding finding{"sandbox", Status::ok,
                    concat("complete: Landlock (ABI ", reading.landlock, ") and seccomp")};
    if (reading.landlock > 0) finding.value = static_cast<double>(reading.landlock);
    if (!reading.lacking.empty()) {
        finding.status = Status::warn;
        finding.text = concat("incomplete: ", reading.lacking);
        finding.remedy =
            "Linux 5.13 or newer with lsm=landlock,... on its command line; in a container, a "
            "profile that allows landlock and seccomp";
    }
    say(finding);
}

void judge_locale(const LocaleReading& locale, const Say& say) {
    const std::string name = locale.name.empty() ? "none is set" : locale.name;
    const bool utf8 = locale.codeset == "UTF-8" || locale.codeset == "utf8";
    if (locale.exists && utf8)
        return say({"locale", Status::ok, concat(name, ": ", locale.codeset)});
    say({"locale", Status::warn,
         locale.exists ? concat(name, ": ", locale.codeset,
                                ", not UTF-8; hark writes UTF-8, which a terminal may show wrongly")
                       : concat(name, ": the system does not know this locale"),
         "export LC_ALL=C.UTF-8"});
}

}  // namespace hark::doctor
