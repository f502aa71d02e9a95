// The events of profiles, as --profile writes them and hark-trace merges them (docs/profiles.md).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/cli/cli.h"
#include "core/json/json.h"

namespace hark::trace {

// A line of a profile.
struct TraceEvent {
    nlohmann::ordered_json json;
    std::string phase;  // X: a span, M: a name, s t f: steps, C: counters
    std::string name;   // of a span: TOOL.STAGE
    int64_t pid = 0, tid = 0;
    double ts = 0, duration = 0;  // microseconds of CLOCK_MONOTONIC
    double own = 0;               // of a span: without the spans within it
    std::string id;               // of a step: its recording's

    bool is_span() const { return phase == "X"; }
    bool is_step() const { return phase == "s" || phase == "t" || phase == "f"; }
    bool is_wait() const { return name.find(".wait.") != name.npos; }
};

// The files of a pipe's tools, which may be read several times.
class TraceFiles {
  public:
    // Throws Error naming the file and the line: it cannot be read, a line is no event, or its
    // times are of another machine or another boot than the first file's.
    explicit TraceFiles(std::vector<std::string> paths);

    // Calls use(event, number) for every event, in the files' order; `number` counts them. A line
    // that a killed tool has left half-written ends its file, with a warning if `console` is not
    // null.
    using Use = std::function<void(const TraceEvent& event, int64_t number)>;
    void for_each(const Use& use, Console* console = nullptr) const;

  private:
    std::vector<std::string> paths_;
};

}  // namespace hark::trace
