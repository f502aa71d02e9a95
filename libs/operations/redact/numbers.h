// Runs of digits: cards, telephone numbers, account numbers.
#pragma once

#include <string_view>
#include <vector>

#include "operations/redact/finding.h"
#include "operations/redact/spoken_digits.h"

namespace hark::redact {

// IBANs whose length and check digits are right, written together or with spaces. The findings are
// of `figures.text`.
std::vector<Finding> find_ibans(const FiguresText& figures);

// Runs of seven digits and more, with spaces, hyphens, dots, brackets and slashes between; commas
// too if they are spoken. A card has Luhn's sum. Amounts (1,200,000, 3.1415926) and lists of years
// are none.
std::vector<Finding> find_digit_runs(const FiguresText& figures);

}  // namespace hark::redact
