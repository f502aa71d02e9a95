// What a trace says of each tool: how long its stages were busy, and how long it waited for a pipe.
#pragma once

#include <string>
#include <vector>

#include "operations/trace/trace_file.h"

namespace hark::trace {

struct StageSum {
    std::string stage;
    int64_t spans = 0;
    double seconds = 0;  // over all threads, without inner spans
    bool is_wait = false;
};

// The processes of a tool together.
struct ToolSum {
    std::string tool;
    double seconds = 0;            // from the first span's begin to the last one's end
    std::vector<StageSum> stages;  // in the order of their first spans
    double busy = 0;               // seconds of the busiest thread, without waits
    std::string busiest;           // the stage that had most of them
    double busiest_seconds = 0;
};

// A GPU, of which hark-trace watch has written samples.
struct GpuSum {
    std::string name;
    int64_t samples = 0, throttled = 0;
    double busy = 0, watts = 0;  // sums over the samples
    double most_watts = 0, most_gb = 0;
    double first_joules = 0, last_joules = 0;
    uint64_t limits = 0;  // ClockLimit's bits of the throttled samples
};

struct TraceSums {
    std::vector<ToolSum> tools;  // in the order of the files
    std::vector<GpuSum> gpus;
};
TraceSums sum_up(const TraceFiles& files, Console& console);

// The tool whose busiest threads were busy the longest; null of an empty list.
const ToolSum* binding_tool(const std::vector<ToolSum>& tools);

// The table, the line about the tool that bound the run, and a line per GPU.
std::string summary_text(const TraceSums& sums);

}  // namespace hark::trace
