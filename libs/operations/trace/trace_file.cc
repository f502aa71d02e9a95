#include "operations/trace/trace_file.h"

#include <optional>
#include <utility>

#include "core/error.h"
#include "core/files/files.h"
#include "core/files/io.h"
#include "text/line_reader.h"

namespace hark::trace {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNoEvent = ": no event of a trace; expected what --profile writes";

// The line without what makes a list of the file's lines; empty: it has no event.
std::string event_text(std::string line) {
    while (line.ends_with(' ') || line.ends_with(',')) line.pop_back();
    return line == "[" || line == "]" ? "" : line;
}

double number_of(const Json& event, const char* key, const std::string& where) {
    const auto found = event.find(key);
    require(found != event.end() && found->is_number(), where, ": expected a number '", key, "'");
    return found->get<double>();
}

int64_t integer_of(const Json& event, const char* key, const std::string& where) {
    const auto found = event.find(key);
    require(found != event.end() && found->is_number_integer(), where,
            ": expected a whole number '", key, "'");
    return found->get<int64_t>();
}

std::string text_of(const Json& event, const char* key, const std::string& where) {
    const auto found = event.find(key);
    require(found != event.end() && found->is_string(), where, ": expected a text '", key, "'");
    return found->get<std::string>();
}

TraceEvent event_of(Json json, const std::string& where) {
    require(json.is_object() && json.contains("ph"), where, kNoEvent);
    TraceEvent event;
    event.phase = text_of(json, "ph", where);
    event.name = text_of(json, "name", where);
    event.pid = integer_of(json, "pid", where);
    event.tid = integer_of(json, "tid", where);
    if (event.phase != "M") event.ts = number_of(json, "ts", where);
    if (event.is_step()) event.id = text_of(json, "id", where);
    if (event.is_span()) {
        event.duration = event.own = number_of(json, "dur", where);
        if (json.contains("args") && json["args"].contains("own"))
            event.own = number_of(json["args"], "own", where);
    }
    event.json = std::move(json);
    return event;
}

void for_each_event(const std::string& path, Console* console,
                    const std::function<void(const TraceEvent&)>& use) {
    const OpenFile file(path);
    ByteReader in(file.fd(), path);
    LineReader lines(in);
    std::optional<std::string> broken;  // where a line is no event, if it is not the last one
    while (const std::optional<std::string> line = lines.next("the trace")) {
        if (broken) fail(*broken, kNoEvent);
        const std::string text = event_text(*line);
        if (text.empty()) continue;
        Json json = parse_ordered_json(text, lines.where());
        if (json.is_discarded())
            broken = lines.where();
        else
            use(event_of(std::move(json), lines.where()));
    }
    if (!broken) return;
    require(lines.number() > 1, *broken, kNoEvent);
    if (console)
        console->warning(concat(*broken, ": the last event is half-written and left out; its tool ",
                                "was killed"));
}

}  // namespace

TraceFiles::TraceFiles(std::vector<std::string> paths) : paths_(std::move(paths)) {
    std::string first_boot, first_path;
    for (const std::string& path : paths_)
        for_each_event(path, nullptr, [&](const TraceEvent& event) {
            if (event.phase != "M" || event.name != "clock") return;
            const auto args = event.json.find("args");
            require(args != event.json.end(), path, ": expected 'args' of the clock");
            const std::string boot = text_of(*args, "boot", path);
            if (first_path.empty()) first_boot = boot, first_path = path;
            require(boot == first_boot, path,
                    ": of another machine, or before a restart of it (got ", boot, ", expected ",
                    first_boot, " as ", first_path, "); their clocks differ");
        });
}

void TraceFiles::for_each(const Use& use, Console* console) const {
    int64_t number = 0;
    for (const std::string& path : paths_)
        for_each_event(path, console, [&](const TraceEvent& event) { use(event, number++); });
}

}  // namespace hark::trace
