// One trace of several profiles.
#pragma once

#include <functional>
#include <string>

#include "operations/trace/trace_file.h"

namespace hark::trace {

// Writes all events, a line each, as one JSON list. Processes are shown in the order of the files.
// The first step of each recording begins its flow and the last one ends it; a recording with one
// step alone has none.
void merge_traces(const TraceFiles& files, Console& console,
                  const std::function<void(const std::string& text)>& write);

}  // namespace hark::trace
