// What is to be replaced in a text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hark::redact {

// In the order in which a longer find takes its name: the parts of an IBAN look like telephone
// numbers.
enum class Kind { listed, email, iban, card, date, phone, number };
inline constexpr Kind kKinds[] = {Kind::listed, Kind::email, Kind::iban,  Kind::card,
                                  Kind::date,   Kind::phone, Kind::number};

std::string_view name_of(Kind kind);  // "phone"
std::string label_of(Kind kind);      // "[PHONE]"

struct Finding {
    size_t begin, end;  // bytes of the text
    Kind kind;
};

// In the order of the text; those that overlap become one, of the kind that comes first in Kind.
std::vector<Finding> merged(std::vector<Finding> findings);

}  // namespace hark::redact
