// Server-sent events, as OpenAI's API streams answers.
#pragma once

#include "core/json/json.h"
#include "serve/web/message.h"

namespace hark::serve {

inline constexpr const char* kLastEvent = "data: [DONE]\n\n";

// The head of an answer of events.
WebResponse event_stream();
// "data: {...}\n\n"
std::string event_of(const nlohmann::ordered_json& root);

}  // namespace hark::serve
