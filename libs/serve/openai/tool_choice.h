// Calls of tools that a chat must have.
#pragma once

#include "core/json/json.h"

namespace hark::serve {

// The JSON schema of an answer that is a call: {"name": ..., "arguments": ...} of one of `tools`,
// or of the one that `choice` names. `choice` is "required" or {"type": "function", "function":
// {"name": ...}}. Throws WebError 400 for another one, if no tool fits, and for tools that have no
// such schema.
nlohmann::ordered_json call_schema(const nlohmann::ordered_json& tools,
                                   const nlohmann::ordered_json& choice);

}  // namespace hark::serve
