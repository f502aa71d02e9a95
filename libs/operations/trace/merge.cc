#include "operations/trace/merge.h"

#include <map>
#include <set>
#include <tuple>

#include "core/error.h"

namespace hark::trace {
namespace {

// The numbers of a recording's first and last steps, by their times.
struct FlowEnds {
    std::tuple<double, int64_t> first, last;
};

std::map<std::string, FlowEnds> flow_ends(const TraceFiles& files) {
    std::map<std::string, FlowEnds> ends;
    files.for_each([&](const TraceEvent& event, int64_t number) {
        if (!event.is_step()) return;
        const std::tuple<double, int64_t> at(event.ts, number);
        const auto [found, is_new] = ends.try_emplace(event.id, FlowEnds{at, at});
        if (is_new) return;
        found->second.first = std::min(found->second.first, at);
        found->second.last = std::max(found->second.last, at);
    });
    return ends;
}

}  // namespace

void merge_traces(const TraceFiles& files, Console& console,
                  const std::function<void(const std::string& text)>& write) {
    const std::map<std::string, FlowEnds> ends = flow_ends(files);
    std::set<int64_t> processes;
    const char* before = "[\n";
    const auto write_event = [&](const nlohmann::ordered_json& event) {
        write(concat(before, event.dump()));
        before = ",\n";
    };
    files.for_each(
        [&](const TraceEvent& event, int64_t number) {
            if (event.phase == "M" && event.name == "process_name" &&
                processes.insert(event.pid).second)
                write_event({{"name", "process_sort_index"},
                             {"ph", "M"},
                             {"pid", event.pid},
                             {"tid", 0},
                             {"args", {{"sort_index", processes.size()}}}});
            if (event.name == "process_sort_index") return;  // of an earlier merge
            if (!event.is_step()) return write_event(event.json);
            const FlowEnds& flow = ends.at(event.id);
            if (flow.first == flow.last) return;
            const std::tuple<double, int64_t> at(event.ts, number);
            nlohmann::ordered_json step = event.json;
            step["ph"] = at == flow.first ? "s" : at == flow.last ? "f" : "t";
            write_event(step);
        },
        &console);
    write(*before == '[' ? "[\n]\n" : "\n]\n");
}

}  // namespace hark::trace
