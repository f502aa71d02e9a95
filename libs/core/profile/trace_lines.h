// Lines of Chrome's trace event format. Source: "Trace Event Format", the document of
// chrome://tracing. ts and dur are microseconds; every line ends with a comma and a line end.
#pragma once

#include <cstdint>
#include <string>

namespace hark {

// This process: its tool, and the boot_id() whose CLOCK_MONOTONIC its times are of.
std::string trace_process(const std::string& tool, const std::string& boot);
// A stage of a thread of this process.
std::string trace_thread(int tid, const std::string& stage);
// Times in nanoseconds; `own` is without inner spans.
std::string trace_span(const std::string& tool, const char* stage, int tid, int64_t begin,
                       int64_t duration, int64_t own);
// A step on the way of a recording's channel; the span that is open at `at` has it.
std::string trace_step(int tid, int64_t at, const std::string& source, const std::string& channel);

}  // namespace hark
