// JSON from outside.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace hark {

// The parsed text, or a discarded value (is_discarded()) where it is not JSON. Throws Error that
// begins with `where` for arrays and objects nested deeper than any file of ours needs: copying
// and printing such a value would use up the stack.
nlohmann::json parse_json(std::string_view text, const std::string& where);

}  // namespace hark
