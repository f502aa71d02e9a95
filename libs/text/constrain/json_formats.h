// The texts of JSON Schema's formats.
#pragma once

#include <string>
#include <vector>

#include "text/constrain/regular.h"

namespace hark {

// Throws Error that lists the formats if the name is none of them.
CharAutomaton format_texts(const std::string& name);
// Those of numbers, which say nothing of a text: int32, int64, float, double.
bool is_number_format(const std::string& name);

}  // namespace hark
