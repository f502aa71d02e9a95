// What a chat template is rendered with.
#pragma once

#include <string>

#include "core/json/json.h"

namespace hark {

struct ChatRequest {
    nlohmann::ordered_json messages;   // a list in OpenAI's form: role, content, tool_calls ...
    nlohmann::ordered_json tools;      // a list of {"type": "function", "function": ...}, or null
    nlohmann::ordered_json documents;  // a list, or null
    bool add_generation_prompt = true;
    nlohmann::ordered_json arguments;  // an object of the template's other variables, or null
    std::string name;                  // of the template; empty: tool_use if there are tools
};

}  // namespace hark
