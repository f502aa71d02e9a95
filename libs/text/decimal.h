// Whole numbers of any size, 0 or more, as decimal digits without leading zeros.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hark {

// The digits without leading zeros; "0" if nothing is left.
std::string decimal(std::string_view digits);

std::string add(std::string_view a, std::string_view b);

// number * 10^zeros.
std::string times_power_of_ten(std::string_view number, size_t zeros);

// Whether the number is a multiple of 10^zeros.
bool is_multiple_of_power_of_ten(std::string_view number, size_t zeros);

// What "12", "12.", "12.5" and ".5", in any script's digits, are times 10^zeros; nullopt where the
// text is none of these or the product is not whole.
std::optional<std::string> whole_product(std::string_view text, size_t zeros);

}  // namespace hark
