// libnvidia-ml.so.1 of a machine without a GPU: one H100 in the state that the variable FAKE_NVML
// names. "sound", "old" (driver), "mismatch", "no-gpu", "ecc", "hot", "capped", "hang".
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

bool is(const char* state) {
    const char* const given = std::getenv("FAKE_NVML");
    return given && std::strcmp(given, state) == 0;
}

template <class Value>
int give(Value* to, Value value) {
    *to = value;
    return 0;
}

constexpr int kNotSupported = 3, kMismatch = 18;

}  // namespace

extern "C" {

int nvmlInit_v2() {
    while (is("hang")) ::pause();
    return is("mismatch") ? kMismatch : 0;
}
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int) { return "Driver/library version mismatch"; }
int nvmlSystemGetDriverVersion(char* text, unsigned length) {
    std::snprintf(text, length, "%s", is("old") ? "470.57.02" : "580.105.08");
    return 0;
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
    return give(version, is("old") ? 11040 : 13000);
}
int nvmlDeviceGetCount_v2(unsigned* count) { return give(count, is("no-gpu") ? 0u : 1u); }
int nvmlDeviceGetHandleByIndex_v2(unsigned, void** device) {
    return give(device, static_cast<void*>(device));
}
int nvmlDeviceGetName(void*, char* text, unsigned length) {
    std::snprintf(text, length, "NVIDIA H100 80GB HBM3");
    return 0;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
    memory[0] = 85'000'000'000, memory[1] = 84'000'000'000, memory[2] = 1'000'000'000;
    return 0;
}
int nvmlDeviceGetClockInfo(void*, int, unsigned* clock) {
    return give(clock, is("hot") ? 600u : 1980u);
}
int nvmlDeviceGetMaxClockInfo(void*, int, unsigned* clock) { return give(clock, 1980u); }
int nvmlDeviceGetUtilizationRates(void*, unsigned* rates) {
    rates[1] = 20;
    return give(&rates[0], 90u);
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) { return give(milliwatts, 400'000u); }
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
    static unsigned long long energy = 1'000'000;
    return give(millijoules, energy += 80'000);  // a fifth of a second of 400 W
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
    return give(celsius, is("hot") ? 91u : 40u);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
    return give(reasons, is("hot") ? 0x40ull : 1ull);
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* limit) {
    return give(limit, is("capped") ? 350'000u : 700'000u);
}
int nvmlDeviceGetPowerManagementDefaultLimit(void*, unsigned* limit) {
    return give(limit, 700'000u);
}
int nvmlDeviceGetEccMode(void*, int* current, int* pending) {
    *pending = 1;
    return give(current, 1);
}
int nvmlDeviceGetTotalEccErrors(void*, int, int, unsigned long long* errors) {
    return give(errors, is("ecc") ? 12ull : 0ull);
}
int nvmlDeviceGetPersistenceMode(void*, int*) { return kNotSupported; }
int nvmlDeviceGetComputeMode(void*, int* mode) { return give(mode, 0); }

}  // extern "C"
