#include "operations/trace/summary.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "core/cli/stats_table.h"
#include "core/error.h"
#include "operations/doctor/gpu.h"

namespace hark::trace {
namespace {

// tid = 100 x thread + stage (core/profile/profile.cc).
constexpr int64_t kStagesPerThread = 100;

struct ProcessTimes {
    double begin = 0, end = 0;                              // microseconds
    std::map<int64_t, std::map<std::string, double>> busy;  // by thread and stage
};

struct ToolTimes {
    ToolSum sum;
    std::map<int64_t, ProcessTimes> processes;
};

void add_span(const TraceEvent& span, const std::string& stage, ToolTimes& tool) {
    const auto [found, is_new] =
        tool.processes.try_emplace(span.pid, ProcessTimes{span.ts, span.ts, {}});
    ProcessTimes& process = found->second;
    process.begin = std::min(process.begin, span.ts);
    process.end = std::max(process.end, span.ts + span.duration);
    std::vector<StageSum>& stages = tool.sum.stages;
    auto of = std::find_if(stages.begin(), stages.end(),
                           [&](const StageSum& one) { return one.stage == stage; });
    if (of == stages.end()) of = stages.insert(of, {stage, 0, 0, span.is_wait()});
    ++of->spans;
    of->seconds += span.own / 1e6;
    if (!span.is_wait()) process.busy[span.tid / kStagesPerThread][stage] += span.own / 1e6;
}

// The busiest thread of a process.
void add_process(const ProcessTimes& process, ToolSum& tool) {
    tool.seconds += (process.end - process.begin) / 1e6;
    double most = 0;
    const std::map<std::string, double>* busiest = nullptr;
    for (const auto& [thread, stages] : process.busy) {
        double busy = 0;
        for (const auto& [stage, seconds] : stages) busy += seconds;
        if (busy <= most && busiest) continue;
        most = busy;
        busiest = &stages;
    }
    if (!busiest) return;
    tool.busy += most;
    for (const auto& [stage, seconds] : *busiest)
        if (seconds > tool.busiest_seconds) tool.busiest_seconds = seconds, tool.busiest = stage;
}

std::string percent(double part, double all) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", all > 0 ? 100 * part / all : 0);
    return text;
}

// Power caps and heat; not an idle GPU, and not clocks that somebody has set.
constexpr uint64_t kThrottles = doctor::kPowerCap | doctor::kHardwareSlowdown |
                                doctor::kSoftwareHeat | doctor::kHardwareHeat | doctor::kPowerBrake;

void add_sample(const TraceEvent& event, std::vector<GpuSum>& gpus) {
    if (!event.name.starts_with("gpu ") || !event.json.contains("args")) return;
    auto gpu = std::find_if(gpus.begin(), gpus.end(),
                            [&](const GpuSum& one) { return one.name == event.name; });
    if (gpu == gpus.end()) gpu = gpus.insert(gpu, {event.name});
    const auto value = [&](const char* key) { return number_or_zero(event.json["args"], key); };
    constexpr double kMostLimits = 1 << 30;  // of known bits
    const auto limits =
        static_cast<uint64_t>(std::clamp(value("limits"), 0.0, kMostLimits)) & kThrottles;
    if (gpu->samples == 0) gpu->first_joules = value("joules");
    gpu->last_joules = value("joules");
    ++gpu->samples;
    gpu->throttled += limits != 0;
    gpu->limits |= limits;
    gpu->busy += value("busy");
    gpu->watts += value("watts");
    gpu->most_watts = std::max(gpu->most_watts, value("watts"));
    gpu->most_gb = std::max(gpu->most_gb, value("GB"));
}

// "gpu 0: busy 93.1%, throttled 2.0% (heat), 412 W, at most 690 W and 31.2 GB, 12345 J"
std::string gpu_text(const GpuSum& gpu) {
    const auto n = static_cast<double>(gpu.samples);
    std::string why;
    if (gpu.limits & (doctor::kPowerCap | doctor::kPowerBrake)) why = "power";
    if (gpu.limits & ~uint64_t{doctor::kPowerCap | doctor::kPowerBrake})
        why += why.empty() ? "heat" : ", heat";
    char text[200];
    std::snprintf(
        text, sizeof text,
        "%s: busy %.1f%%, throttled %.1f%%%s, %.0f W, at most %.0f W and %.1f GB, %.0f J\n",
        gpu.name.c_str(), gpu.busy / n, 100 * static_cast<double>(gpu.throttled) / n,
        why.empty() ? "" : concat(" (", why, ")").c_str(), gpu.watts / n, gpu.most_watts,
        gpu.most_gb, gpu.last_joules - gpu.first_joules);
    return text;
}

}  // namespace

TraceSums sum_up(const TraceFiles& files, Console& console) {
    std::vector<ToolTimes> tools;
    TraceSums sums;
    files.for_each(
        [&](const TraceEvent& event, int64_t) {
            if (event.phase == "C") return add_sample(event, sums.gpus);
            const size_t point = event.name.find('.');
            if (!event.is_span() || point == event.name.npos) return;
            const std::string name = event.name.substr(0, point);
            auto tool = std::find_if(tools.begin(), tools.end(),
                                     [&](const ToolTimes& one) { return one.sum.tool == name; });
            if (tool == tools.end()) tool = tools.insert(tool, ToolTimes{.sum = {.tool = name}});
            add_span(event, event.name.substr(point + 1), *tool);
        },
        &console);
    for (ToolTimes& tool : tools) {
        for (const auto& [pid, process] : tool.processes) add_process(process, tool.sum);
        sums.tools.push_back(std::move(tool.sum));
    }
    return sums;
}

const ToolSum* binding_tool(const std::vector<ToolSum>& tools) {
    const auto found =
        std::max_element(tools.begin(), tools.end(),
                         [](const ToolSum& a, const ToolSum& b) { return a.busy < b.busy; });
    return found == tools.end() ? nullptr : &*found;
}

std::string summary_text(const TraceSums& sums) {
    std::string text;
    StatsTable table([&](const std::string& line) { text += line + "\n"; },
                     {"tool               ", "stage   ", "spans", "seconds busy", "seconds blocked",
                      "% of its run"});
    for (const ToolSum& tool : sums.tools)
        for (const StageSum& stage : tool.stages)
            table.row({tool.tool, stage.stage, concat(stage.spans),
                       stage.is_wait ? "" : stats_number(stage.seconds),
                       stage.is_wait ? stats_number(stage.seconds) : "",
                       percent(stage.seconds, tool.seconds)});
    if (const ToolSum* const bound = binding_tool(sums.tools); bound && bound->busy > 0)
        text += concat("bound by ", bound->tool, ": busy for ",
                       percent(bound->busy, bound->seconds), "% of its run, of that ",
                       percent(bound->busiest_seconds, bound->busy), "% in ", bound->busiest, "\n");
    for (const GpuSum& gpu : sums.gpus) text += gpu_text(gpu);
    return text;
}

}  // namespace hark::trace
