// Messages in the forms that templates expect.
#pragma once

#include "core/json/json.h"

namespace hark {

// Content that is a list of text parts becomes their texts with "\n" between them.
void join_text_parts(nlohmann::ordered_json& messages);

// Arguments of tool calls that are the JSON of an object, as OpenAI has them, become the object.
// Whether there were any.
bool parse_call_arguments(nlohmann::ordered_json& messages);

// The messages as templates read them: without keys whose value is null, and with reasoning under
// the names reasoning_content and thinking (transformers 5.24, chat_template_utils.py).
nlohmann::ordered_json normalized_messages(const nlohmann::ordered_json& messages);

}  // namespace hark
