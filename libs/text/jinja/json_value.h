// JSON as a template's values.
#pragma once

#include "core/json/json.h"
#include "text/jinja/value.h"

namespace hark::jinja {

// Invalid UTF-8 becomes U+FFFD. Throws Error for JSON nested too deep and integers of more than 64
// bits.
Value from_json(const nlohmann::ordered_json& json, bool is_input);

}  // namespace hark::jinja
