// GPUs: readings made up, as a sound, an old, a hot and a broken one would give them.
#include <set>

#include "operations/doctor/gpu.h"

#include "operations/doctor_case.h"

namespace hark::doctor {
namespace {

const GpuReading kSoundGpu = {.name = "NVIDIA H200",
                              .bus = "00000000:1B:00.0",
                              .memory = 150'000'000'000,
                              .free_memory = 149'000'000'000,
                              .clock = 1980,
                              .highest_clock = 1980,
                              .application_clock = 1980,
                              .limits = 0,
                              .celsius = 41,
                              .power = 120'000,
                              .power_limit = 700'000,
                              .usual_power_limit = 700'000,
                              .ecc = true,
                              .uncorrected = 0,
                              .remap_pending = false,
                              .remap_failed = false,
                              .persistence = true,
                              .mig = false,
                              .compute_mode = 0};

Finding driver(const DriverReading& reading, bool wanted = false) {
    return Findings([&](const Say& say) { judge_driver(reading, wanted, say); }).of("gpu.driver");
}
Findings health(const GpuReading& reading, size_t gpus = 1) {
    return Findings([&](const Say& say) { judge_health(reading, gpus, say); });
}
Finding clocks(const GpuReading& reading) {
    return Findings([&](const Say& say) { judge_clocks(reading, 1, say); }).of("gpu.clocks");
}

DriverReading sound_driver() {
    return {.bus_gpus = 1,
            .device_file = true,
            .device_opens = true,
            .has_library = true,
            .version = "580.105.08",
            .cuda = 13000,
            .gpus = {kSoundGpu}};
}

TEST(JudgeDriver, NamesVersionAndGpus) {
    DriverReading reading = sound_driver();
    expect_finding(driver(reading), Status::ok,
                   "NVIDIA 580.105.08, for CUDA up to 13.0; NVIDIA H200");
    reading.cuda = 12040;
    EXPECT_EQ(driver(reading).value, 12.4);
    reading.cuda = 11040;
    reading.version = "470.57.02";
    expect_finding(
        driver(reading), Status::fail,
        "NVIDIA 470.57.02, for CUDA up to 11.4; NVIDIA H200; hark needs a driver for CUDA "
        "12.0",
        "driver 525.60 or newer");
    reading.gpus.clear();
    expect_finding(driver(reading), Status::fail, "finds no GPU", "--gpus all");
}

TEST(JudgeDriver, ItsAbsenceIsAFailureIfAGpuIsWanted) {
    const auto all = [](const DriverReading& reading) {
        return Findings([&](const Say& say) { judge_driver(reading, false, say); }).of("gpu");
    };
    expect_finding(all({}), Status::skip, "hark computes on the CPU");
    // The library alone, as in an image that has been made for other machines.
    expect_finding(all({.has_library = true, .status = 9}), Status::skip, "no NVIDIA GPU");
    expect_finding(driver({}, true), Status::fail, "no NVIDIA GPU", "install NVIDIA's driver");
    expect_finding(driver({.has_library = true, .status = 9}, true), Status::fail, "error 9",
                   "modprobe nvidia");
    const DriverReading bus = {.bus_gpus = 1};
    expect_finding(driver(bus), Status::warn, "on the PCI bus", "docker run --gpus all");
    expect_finding(driver(bus, true), Status::fail, "on the PCI bus", "install NVIDIA's driver");
    expect_finding(driver({.device_file = true}), Status::fail, "/dev/nvidiactl exists",
                   "docker run --gpus all");
}

TEST(JudgeDriver, ErrorsOfItsStartHaveTheirRemedies) {
    DriverReading reading = sound_driver();
    reading.status = 18;
    reading.status_text = "Driver/library version mismatch";
    expect_finding(driver(reading), Status::fail, "Driver/library version mismatch", "restart");
    reading.status = 9;
    expect_finding(driver(reading), Status::fail, "mismatch", "modprobe nvidia");
    reading.status = 999;
    reading.status_text = "";
    expect_finding(driver(reading), Status::fail, "error 999", "dmesg");
    reading.device_opens = false;
    expect_finding(driver(reading), Status::fail, "error 999", "usermod");
}

TEST(JudgeHealth, ASoundGpuIsOk) {
    for (const Finding& finding : health(kSoundGpu).all)
        EXPECT_EQ(finding.status, Status::ok) << finding.check;
    expect_finding(health(kSoundGpu).of("gpu.memory"), Status::ok, "149 GB of 150 GB free");
    expect_finding(health(kSoundGpu).of("gpu.ecc"), Status::ok, "on; 0 uncorrected errors");
    expect_finding(health(kSoundGpu).of("gpu.power"), Status::ok, "limit 700 W");
    // One of several is named.
    EXPECT_EQ(health(kSoundGpu, 8).of("gpu.power").text, "GPU 0: limit 700 W");
}

TEST(JudgeHealth, WhatTheDriverDoesNotTellIsSkipped) {
    for (const Finding& finding : health({}).all)
        EXPECT_EQ(finding.status, Status::skip) << finding.check;
    EXPECT_EQ(health({}).all.size(), 4u);
    EXPECT_EQ(clocks({}).status, Status::skip);
}

TEST(JudgeHealth, EachFaultHasItsRemedy) {
    GpuReading gpu = kSoundGpu;
    gpu.index = 3;
    gpu.free_memory = 10'000'000'000;
    expect_finding(health(gpu).of("gpu.memory"), Status::warn, "10.0 GB of 150 GB", "nvidia-smi");
    gpu.remap_pending = true;
    expect_finding(health(gpu).of("gpu.ecc"), Status::warn, "at the next reset",
                   "nvidia-smi -i 3 --gpu-reset");
    gpu.uncorrected = 7;
    expect_finding(health(gpu).of("gpu.ecc"), Status::fail, "7 uncorrected errors", "--gpu-reset");
    gpu.remap_failed = true;
    expect_finding(health(gpu).of("gpu.ecc"), Status::fail, "could not be replaced",
                   "replace this");
    gpu.power_limit = 400'000;
    expect_finding(health(gpu).of("gpu.power"), Status::warn,
                   "limit 400 W, below this GPU's default", "nvidia-smi -i 3 -pl 700");
    gpu.persistence = false;
    expect_finding(health(gpu).of("gpu.mode"), Status::warn, "persistence mode is off", "-pm 1");
    gpu.compute_mode = 3;
    expect_finding(health(gpu).of("gpu.mode"), Status::warn, "Exclusive_Process", "-c DEFAULT");
    gpu.compute_mode = 2;
    expect_finding(health(gpu).of("gpu.mode"), Status::fail, "Prohibited", "-c DEFAULT");
}

TEST(JudgeClocks, HeatAndPowerSlowThemDown) {
    GpuReading gpu = kSoundGpu;
    expect_finding(clocks(gpu), Status::ok, "1980 MHz of 1980, 41 degrees, 120 W, without load");
    gpu.loaded = true;
    gpu.limits = kPowerCap;
    expect_finding(clocks(gpu), Status::ok, "under load; at its power limit");
    gpu.application_clock = 800;
    expect_finding(clocks(gpu), Status::warn, "set to 800 MHz", "nvidia-smi -i 0 -rac");
    gpu.limits = kPowerBrake;
    expect_finding(clocks(gpu), Status::warn, "by the power supply", "power cables");
    gpu.limits = kHardwareSlowdown | kHardwareHeat;
    expect_finding(clocks(gpu), Status::warn, "slowed down by heat", "fans");
    gpu.limits = kIdle;
    gpu.application_clock = gpu.highest_clock;
    EXPECT_EQ(clocks(gpu).status, Status::ok);
}

TEST(JudgeSpeed, AgainstTheDataSheet) {
    const auto judge = [](const GpuSpeedReading& reading) {
        return Findings([&](const Say& say) { judge_speed(reading, say); });
    };
    GpuSpeedReading reading = {"NVIDIA H200", 53, 54, 4260, 690, ""};
    Findings found = judge(reading);
    expect_finding(found.of("gpu.transfer"), Status::ok, "53.0 GB/s to the GPU, 54.0 from it");
    expect_finding(found.of("gpu.copy"), Status::ok, "4260 GB/s");
    expect_finding(found.of("gpu.product"), Status::ok, "690 TFLOP/s");
    reading = {"NVIDIA H200", 6, 54, 2000, 300, ""};
    found = judge(reading);
    expect_finding(found.of("gpu.transfer"), Status::warn, "usual is 25.6 at least", "PCIe");
    expect_finding(found.of("gpu.copy"), Status::warn, "usual is 3120 at least", "gpu.clocks");
    expect_finding(found.of("gpu.product"), Status::warn, "usual is 445 at least", "gpu.power");
    reading.name = "NVIDIA H200 MIG 1g.18gb";
    expect_finding(judge(reading).of("gpu.copy"), Status::ok, "is not known");
    reading.copy = std::nullopt;
    reading.why_not = "out of GPU memory";
    expect_finding(judge(reading).of("gpu.copy"), Status::skip, "not measured: out of GPU memory");
}

TEST(StartError, HasARemedy) {
    EXPECT_NE(start_error(802).text.find("802"), std::string::npos);
    test::expect_contains(start_error(802).remedy, "fabricmanager");
    test::expect_contains(start_error(100).remedy, "CUDA_VISIBLE_DEVICES");
    test::expect_contains(start_error(101).remedy, "nvidia-smi -L");
    test::expect_contains(start_error(803).remedy, "restart");
    test::expect_contains(start_error(42).text, "42");
}

// The remedy is the cause's, whatever the message says.
TEST(LibraryFailure, HasTheRemedyOfItsCause) {
    const auto of = [](PluginProblem problem) {
        return library_failure({problem, "no GPU can be used: cannot load it; do it again"});
    };
    expect_finding(of(PluginProblem::missing), Status::fail, "cannot load it", "hark-cuda");
    expect_finding(of(PluginProblem::unloadable), Status::fail, "cannot load it", "cuBLAS");
    expect_finding(of(PluginProblem::other_build), Status::fail, "cannot load it", "do it again");
}

TEST(KnownGpus, NamesAreUniqueAndFiguresPlausible) {
    std::set<std::string> names;
    for (const KnownGpu& gpu : known_gpus()) {
        EXPECT_TRUE(names.insert(gpu.name).second) << gpu.name;
        EXPECT_TRUE(names.insert(gpu.drivers_name).second) << gpu.drivers_name;
        EXPECT_EQ(find_gpu(gpu.drivers_name), &gpu);
        // Products that one byte from memory feeds: 100 to 500 of all of them.
        const double balance = gpu.bf16_tflops * 1e3 / gpu.memory_gb_per_s;
        EXPECT_TRUE(balance > 100 && balance < 500) << gpu.name << " " << balance;
        EXPECT_TRUE(gpu.memory_gb >= 24 && gpu.watts >= 72) << gpu.name;
    }
    EXPECT_EQ(find_gpu("NVIDIA A10G"), nullptr);
}

}  // namespace
}  // namespace hark::doctor
