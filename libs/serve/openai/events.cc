#include "serve/openai/events.h"

namespace hark::serve {

WebResponse event_stream() {
    return {.content_type = "text/event-stream",
            .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
            .pause = ": pause\n\n"};  // a comment
}

std::string event_of(const nlohmann::ordered_json& root) {
    return "data: " + dumped(root) + "\n\n";
}

std::string dumped(const nlohmann::ordered_json& root) {
    return root.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace hark::serve
