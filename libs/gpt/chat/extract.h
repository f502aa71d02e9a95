// The part of an answer that a program reads: its first code block or JSON value.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hark::gpt {

enum class Extract { nothing, code, json };
// As --extract names them; "" is nothing.
Extract extract_of(std::string_view name);

// The content of the first fenced code block, without the fences (CommonMark 0.31, section 4.5).
// nullopt if there is none, or the first one has no closing fence.
std::optional<std::string> first_code_block(std::string_view text);

// The bytes of the whole text if it is one JSON value, else of its first valid object or list.
// nullopt if there is none.
std::optional<std::string> first_json(std::string_view text);

}  // namespace hark::gpt
