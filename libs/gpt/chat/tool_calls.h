// Calls of tools in an answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "gpt/chat/reasoning.h"
#include "text/tokenizer.h"

namespace hark::gpt {

// The calls in OpenAI's form, in the order of the text: {"id", "type", "function": {"name",
// "arguments"}}, the arguments as the text of a JSON object; null if there are none. The calls are
// cut out of `text`, as are line ends before them. Forms that are read (docs/formats.md):
//   <tool_call>{"name": ..., "arguments": {...}}</tool_call>, also of a list, any number of times;
//   {"name": ..., "parameters": {...}} as the whole text (Llama 3);
//   [TOOL_CALLS] before a list of the first form's objects, or before each NAME[ARGS]{...}
//   (Mistral), from there to the end.
// A call's own id is kept. A call that is not valid JSON of this form stays text.
nlohmann::ordered_json take_tool_calls(std::string& text);

// The same of texts for tools that the answer has apart, gpt-oss's; null if there are none.
nlohmann::ordered_json openai_calls(const std::vector<ToolText>& texts);

// The special tokens that begin such calls. They must be in a text that may have calls.
std::vector<int32_t> tool_call_tokens(const Tokenizer& tokenizer);

}  // namespace hark::gpt
