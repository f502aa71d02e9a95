#include "core/profile/trace_lines.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include "core/error.h"
#include "core/json/json.h"
#include "core/profile/profile.h"

namespace hark {
namespace {

std::string microseconds(int64_t ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%" PRId64 ".%03d", ns / 1000, static_cast<int>(ns % 1000));
    return text;
}

std::string quoted(const std::string& text) { return json_text(nlohmann::json(text)); }

std::string metadata(const char* name, int tid, const std::string& arguments) {
    return concat("{\"name\":\"", name, "\",\"ph\":\"M\",\"pid\":", ::getpid(), ",\"tid\":", tid,
                  ",\"args\":{", arguments, "}},\n");
}

}  // namespace

std::string trace_process(const std::string& tool, const std::string& boot) {
    return metadata("process_name", 0, concat("\"name\":", quoted(tool))) +
           metadata("clock", 0, concat("\"boot\":", quoted(boot)));
}

std::string trace_thread(int tid, const std::string& stage) {
    return metadata("thread_name", tid, concat("\"name\":", quoted(stage))) +
           metadata("thread_sort_index", tid, concat("\"sort_index\":", tid));
}

std::string trace_span(const std::string& tool, const char* stage, int tid, int64_t begin,
                       int64_t duration, int64_t own) {
    return concat("{\"name\":\"", tool, ".", stage,
                  "\",\"cat\":\"stage\",\"ph\":\"X\",\"ts\":", microseconds(begin),
                  ",\"dur\":", microseconds(duration), ",\"pid\":", ::getpid(), ",\"tid\":", tid,
                  ",\"args\":{\"own\":", microseconds(own), "}},\n");
}

std::string trace_step(int tid, int64_t at, const std::string& source, const std::string& channel) {
    char id[24];
    std::snprintf(id, sizeof id, "0x%016" PRIx64, flow_id(source, channel));
    return concat(
        "{\"name\":\"recording\",\"cat\":\"recording\",\"ph\":\"t\",\"bp\":\"e\",\"id\":\"", id,
        "\",\"ts\":", microseconds(at), ",\"pid\":", ::getpid(), ",\"tid\":", tid,
        ",\"args\":{\"source\":", quoted(source), ",\"channel\":", quoted(channel), "}},\n");
}

}  // namespace hark
