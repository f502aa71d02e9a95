#include "serve/openai/events.h"

namespace hark::serve {

WebResponse event_stream() {
    return {.content_type = "text/event-stream",
            .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
            .pause = ": pause\n\n"};  // a comment
}

std::string event_of(const nlohmann::ordered_json& root) {
    return "data: " + json_text(root) + "\n\n";
}

}  // namespace hark::serve
