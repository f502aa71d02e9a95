// Messages in the forms that templates expect.
#pragma once

#include "core/json.h"

namespace hark {

// Content that is a list of text parts becomes their texts with "\n" between them.
void join_text_parts(nlohmann::ordered_json& messages);

// Arguments of tool calls that are the JSON of an object, as OpenAI has them, become the object.
// Whether there were any.
bool parse_call_arguments(nlohmann::ordered_json& messages);

}  // namespace hark
