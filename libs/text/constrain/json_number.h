// Texts of JSON numbers within bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "text/constrain/regular.h"

namespace hark {

struct NumberBound {
    nlohmann::ordered_json value;
    bool exclusive = false;
};

struct NumberRange {
    std::vector<NumberBound> least, most;
    std::vector<nlohmann::ordered_json> multiple_of;

    bool empty() const { return least.empty() && most.empty() && multiple_of.empty(); }
};

// An integer, of 18 digits at most, without an exponent.
Regular any_integer();
// A number of 16 digits before and after the point, and 2 of an exponent, at most.
Regular any_number();
// Within the range. Numbers have no exponent and 15 digits at most: so a reader's double is within
// the range too. Without a bound on a side they are below 10^15, with a fraction of 6 digits at
// most below 10^9. Throws Error for a bound of 10^15 and more, and for a multipleOf that is not a
// whole number to 10000, or such a number of tenths, hundredths and so on to 10^-9.
CharAutomaton integer_within(const NumberRange& range);
CharAutomaton number_within(const NumberRange& range);

}  // namespace hark
