#include "operations/trace/gpu_watch.h"

#include <unistd.h>

#include <csignal>
#include <ctime>

#include "core/cli/ending_signal.h"
#include "core/error.h"
#include "core/json/json.h"
#include "core/profile/process_info.h"
#include "core/profile/profile.h"
#include "core/profile/trace_lines.h"

namespace hark::trace {
namespace {

constexpr int64_t kWatchInterval = 200'000'000;  // nanoseconds

}  // namespace

std::string gpu_line(const doctor::GpuSample& sample, int64_t ns) {
    nlohmann::ordered_json values;
    if (sample.busy) values["busy"] = *sample.busy;
    if (sample.power) values["watts"] = *sample.power / 1e3;
    if (sample.clock) values["MHz"] = *sample.clock;
    if (sample.used_memory) values["GB"] = static_cast<double>(*sample.used_memory) / 1e9;
    if (sample.energy) values["joules"] = static_cast<double>(*sample.energy) / 1e3;
    if (sample.limits) values["limits"] = *sample.limits;
    const nlohmann::ordered_json line = {{"name", concat("gpu ", sample.index)},
                                         {"ph", "C"},
                                         {"ts", static_cast<double>(ns) / 1e3},
                                         {"pid", ::getpid()},
                                         {"tid", 0},
                                         {"args", values}};
    return line.dump() + ",\n";
}

void watch_gpus(const std::function<void(const std::string& text)>& write) {
    hold_ending_signals();
    const doctor::Nvml nvml;
    require(nvml.is_open(), "found no GPU: no driver's libnvidia-ml.so.1 is here");
    require(nvml.status() == 0, "the GPUs cannot be asked: ", nvml.status_text());
    require(!nvml.sample().empty(), "found no GPU");
    write("[\n" + trace_process("hark-trace", boot_id()));
    const sigset_t ending = ending_signals();
    const pid_t parent = ::getppid();
    for (;;) {
        const int64_t now = monotonic_ns();
        for (const doctor::GpuSample& sample : nvml.sample()) write(gpu_line(sample, now));
        const timespec rest = {0, kWatchInterval};
        if (::sigtimedwait(&ending, nullptr, &rest) > 0 || ::getppid() != parent) return;
    }
}

}  // namespace hark::trace
