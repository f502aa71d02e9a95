// Calls of tools in an answer.
#pragma once

#include <string>

#include "core/json.h"

namespace hark::gpt {

// The calls in OpenAI's form, in the order of the text: {"id", "type", "function": {"name",
// "arguments"}}, the arguments as the text of a JSON object; null if there are none. The calls are
// cut out of `text`, as are line ends before them. Forms that are read (docs/formats.md):
//   <tool_call>{"name": ..., "arguments": {...}}</tool_call>, also of a list, any number of times;
//   {"name": ..., "parameters": {...}} as the whole text (Llama 3).
// A call that is not valid JSON of this form stays text.
nlohmann::ordered_json take_tool_calls(std::string& text);

}  // namespace hark::gpt
