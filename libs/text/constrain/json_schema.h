// JSON schemas (draft 2020-12) as grammars.
#pragma once

#include <string_view>

#include "core/json/json.h"
#include "text/constrain/grammar.h"

namespace hark {

// Every text of the grammar is a value that fits the schema; docs/models/constrained.md says which
// values it has, and the keywords. Throws Error that names the keyword and its place for one that
// is not supported: nothing is left out silently.
Grammar schema_grammar(const nlohmann::ordered_json& schema);

}  // namespace hark
