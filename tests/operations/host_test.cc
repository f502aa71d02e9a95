// Readings of the host, made up and from trees of files as Linux has them.
#include "operations/doctor/host.h"

#include "operations/doctor_case.h"

namespace hark::doctor {
namespace {

namespace fs = std::filesystem;

const CpuReading kSoundCpu = {.architecture = "x86_64",
                              .model = "AMD EPYC 7763",
                              .kernels = "avx2",
                              .online = 16,
                              .affinity = 16,
                              .governor = "powersave",
                              .frequency_driver = "intel_pstate",
                              .pressure = 1.5};

Findings cpu(const CpuReading& reading) {
    return Findings([&](const Say& say) { judge_cpu(reading, say); });
}

TEST(JudgeCpu, ASoundOneIsOk) {
    const Findings found = cpu(kSoundCpu);
    EXPECT_EQ(found.all.size(), 4u);
    for (const Finding& finding : found.all) EXPECT_EQ(finding.status, Status::ok) << finding.check;
    expect_finding(found.of("cpu.features"), Status::ok, "AMD EPYC 7763: kernels avx2");
    expect_finding(found.of("cpu.cores"), Status::ok, "16 of 16 cores");
    EXPECT_EQ(found.of("cpu.cores").value, 16.0);
    expect_finding(found.of("cpu.busy"), Status::ok, "1.50% of the last 10 s");
}

TEST(JudgeCpu, WithoutAvx2ItIsSlow) {
    CpuReading reading = kSoundCpu;
    reading.kernels = "plain";
    expect_finding(cpu(reading).of("cpu.features"), Status::warn, "AVX2, FMA or F16C is missing",
                   "-cpu host");
    reading.architecture = "aarch64";
    expect_finding(cpu(reading).of("cpu.features"), Status::warn, "none of this processor's own",
                   "use a GPU");
}

TEST(JudgeCpu, CoresAreThoseOfTheQuotaAndOfTheMask) {
    CpuReading reading = kSoundCpu;
    reading.quota = 1;
    reading.throttled = 38;
    expect_finding(cpu(reading).of("cpu.cores"), Status::warn,
                   "1 of 16 cores: the cgroup's CPU quota; it has stopped this cgroup for 38.0 s",
                   "docker run --cpus 16");
    EXPECT_EQ(cpu(reading).of("cpu.cores").value, 1.0);
    reading.quota = 16;
    expect_finding(cpu(reading).of("cpu.cores"), Status::ok, "16 of 16 cores");
    reading.affinity = 4;
    expect_finding(cpu(reading).of("cpu.cores"), Status::ok, "4 of 16 cores: the affinity mask");
    reading.affinity = 1;
    expect_finding(cpu(reading).of("cpu.cores"), Status::warn, "1 of 16 cores", "taskset");
    reading.online = 1;
    expect_finding(cpu(reading).of("cpu.cores"), Status::warn, "1 core", "more cores");
}

TEST(JudgeCpu, PowersaveOfAnOldDriverKeepsTheLowestClock) {
    CpuReading reading = kSoundCpu;
    reading.frequency_driver = "acpi-cpufreq";
    expect_finding(cpu(reading).of("cpu.governor"), Status::warn, "powersave (acpi-cpufreq)",
                   "cpupower frequency-set -g performance");
    reading.governor = "schedutil";
    expect_finding(cpu(reading).of("cpu.governor"), Status::ok, "schedutil");
    reading.governor = "";
    expect_finding(cpu(reading).of("cpu.governor"), Status::skip, "not reported by");
}

TEST(JudgeCpu, OtherProgramsAreNamedAsTheCause) {
    CpuReading reading = kSoundCpu;
    reading.pressure = 80;
    expect_finding(cpu(reading).of("cpu.busy"), Status::warn, "80.0%", "see top");
    reading.pressure = std::nullopt;
    expect_finding(cpu(reading).of("cpu.busy"), Status::skip, "not told");
}

TEST(ReadCpu, TakesTheFilesOfLinux) {
    const test::TemporaryDirectory root;
    const auto file = [&](const std::string& name, const std::string& text) {
        fs::create_directories((root.path() / name).parent_path());
        test::write_text(root.path() / name, text);
    };
    CpuReading reading = read_cpu(root.path());
    EXPECT_EQ(reading.model, "");
    EXPECT_EQ(reading.quota, std::nullopt);
    EXPECT_EQ(reading.throttled, std::nullopt);
    EXPECT_EQ(reading.pressure, std::nullopt);
    file("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 7763 64-Core\n");
    file("proc/stat", "cpu  1 2\ncpu0 1 2\ncpu1 1 2\ncpu2 1 2\nintr 5\n");
    file("proc/self/cgroup", "0::/job\n");
    file("proc/pressure/cpu", "some avg10=12.50 avg60=1.00 avg300=0.00 total=5\n");
    file("sys/fs/cgroup/job/cpu.max", "100000 100000\n");
    file("sys/fs/cgroup/job/cpu.stat", "usage_usec 7\nnr_throttled 3\nthrottled_usec 2500000\n");
    file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    reading = read_cpu(root.path());
    EXPECT_EQ(reading.model, "AMD EPYC 7763 64-Core");
    EXPECT_EQ(reading.online, 3);
    EXPECT_EQ(reading.quota, 1);
    EXPECT_EQ(reading.throttled, 2.5);
    EXPECT_EQ(reading.pressure, 12.5);
    EXPECT_EQ(reading.governor, "performance");
    // Version 1 counts nanoseconds.
    file("proc/self/cgroup", "4:cpu,cpuacct:/job\n");
    file("sys/fs/cgroup/cpu/job/cpu.stat", "nr_throttled 3\nthrottled_time 1500000000\n");
    EXPECT_EQ(read_cpu(root.path()).throttled, 1.5);
}

TEST(JudgeMemory, LittleIsAWarning) {
    const auto judge = [](const MemoryReading& reading) {
        return Findings([&](const Say& say) { judge_memory(reading, say); });
    };
    const int64_t giga = 1'000'000'000;
    const Findings sound = judge({.total = 64 * giga, .available = 48 * giga, .pressure = 0});
    expect_finding(sound.of("memory.available"), Status::ok, "48.0 GB of 64.0 GB available");
    expect_finding(sound.of("memory.limit"), Status::ok, "no cgroup limits it");
    expect_finding(sound.of("memory.pressure"), Status::ok, "0.00%");
    const Findings little =
        judge({.total = 64 * giga, .available = giga, .limit = giga / 2, .pressure = 30});
    expect_finding(little.of("memory.available"), Status::warn, "1.00 GB of 64.0 GB", "smaller");
    expect_finding(little.of("memory.limit"), Status::warn, "the cgroup allows 500 MB",
                   "docker run --memory");
    expect_finding(little.of("memory.pressure"), Status::warn, "30.0%", "smaller");
    const Findings unknown = judge({});
    expect_finding(unknown.of("memory.available"), Status::skip, "not told");
    expect_finding(unknown.of("memory.pressure"), Status::skip, "not told");
}

TEST(ReadMemory, TakesTheFilesOfLinux) {
    const test::TemporaryDirectory root;
    fs::create_directories(root.path() / "proc/self");
    fs::create_directories(root.path() / "sys/fs/cgroup/memory/job");
    test::write_text(root.path() / "proc/meminfo",
                     "MemTotal:       16000 kB\nMemFree: 5 kB\nMemAvailable:   8000 kB\n");
    test::write_text(root.path() / "proc/self/cgroup", "4:memory:/job\n");
    const fs::path limit = root.path() / "sys/fs/cgroup/memory/job/memory.limit_in_bytes";
    test::write_text(limit, "9223372036854771712\n");
    EXPECT_EQ(read_memory(root.path()).total, 16000 * 1024);
    EXPECT_EQ(read_memory(root.path()).available, 8000 * 1024);
    EXPECT_EQ(read_memory(root.path()).limit, std::nullopt);
    test::write_text(limit, "2000000000\n");
    EXPECT_EQ(read_memory(root.path()).limit, 2'000'000'000);
}

TEST(JudgeBandwidth, SaysWhatItAllows) {
    const auto judge = [](double speed) {
        return Findings([&](const Say& say) { judge_bandwidth(speed, 4, say); })
            .of("memory.bandwidth");
    };
    expect_finding(judge(39), Status::ok, "39.0 GB/s read by 4 threads: at most 39.0 tokens/s");
    expect_finding(judge(3), Status::warn, "3.00 GB/s", "cpu.busy");
}

TEST(JudgeLimits, LowOnesAreNamed) {
    const auto judge = [](const LimitsReading& reading) {
        return Findings([&](const Say& say) { judge_limits(reading, say); });
    };
    for (const Finding& finding : judge({}).all) expect_finding(finding, Status::ok, "unlimited");
    const Findings low = judge(
        {.files = 256, .processes = 100, .address_space = 4'000'000'000, .file_size = 1'000'000});
    expect_finding(low.of("limits.files"), Status::warn, "256: few open files", "ulimit -n 4096");
    EXPECT_EQ(low.of("limits.files").value, 256.0);
    expect_finding(low.of("limits.processes"), Status::warn, "100: threads count too", "ulimit -u");
    expect_finding(low.of("limits.memory"), Status::warn, "4.00 GB of address space",
                   "ulimit -v unlimited");
    expect_finding(low.of("limits.file-size"), Status::warn, "1.00 MB", "ulimit -f unlimited");
    expect_finding(judge({.files = 1024}).of("limits.files"), Status::ok, "1024");
}

TEST(JudgeSandbox, WhatTheKernelLacksIsNamed) {
    const auto judge = [](const SandboxReading& reading) {
        return Findings([&](const Say& say) { judge_sandbox(reading, say); }).of("sandbox");
    };
    expect_finding(judge({6, ""}), Status::ok, "complete: Landlock (ABI 6) and seccomp");
    EXPECT_EQ(judge({6, ""}).value, 6.0);
    const Finding none = judge({0, "this kernel has no Landlock (Function not implemented)"});
    expect_finding(none, Status::warn, "incomplete: this kernel has no Landlock", "Linux 5.13");
    EXPECT_EQ(none.value, std::nullopt);
}

TEST(JudgeLocale, Utf8IsNeeded) {
    const auto judge = [](const LocaleReading& reading) {
        return Findings([&](const Say& say) { judge_locale(reading, say); }).of("locale");
    };
    expect_finding(judge({"C.UTF-8", true, "UTF-8"}), Status::ok, "C.UTF-8: UTF-8");
    expect_finding(judge({"", true, "ANSI_X3.4-1968"}), Status::warn,
                   "none is set: ANSI_X3.4-1968, not UTF-8", "export LC_ALL=C.UTF-8");
    expect_finding(judge({"xx_XX.UTF-8", false, "ANSI_X3.4-1968"}), Status::warn,
                   "xx_XX.UTF-8: the system does not know", "export LC_ALL=C.UTF-8");
}

}  // namespace
}  // namespace hark::doctor
