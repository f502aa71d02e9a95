// str.format and the format specifications of its fields.
#pragma once

#include "text/jinja/value.h"

namespace hark::jinja {

Text str_format(Interpreter& in, const Text& format, const Args& args);

// format(value, spec).
Text format_value(Interpreter& in, const Value& value, const Text& spec);

}  // namespace hark::jinja
