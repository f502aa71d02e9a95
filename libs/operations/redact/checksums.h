// The check digits of account and card numbers.
#pragma once

#include <cstddef>
#include <string_view>

namespace hark::redact {

// Luhn's sum (ISO/IEC 7812-1), of decimal digits.
bool passes_luhn(std::string_view digits);

// Characters of an IBAN of that country, by its two capitals; 0 if it has none (the SWIFT
// registry).
size_t iban_length(std::string_view country);
// ISO 13616: the remainder by 97, of capitals and digits without spaces.
bool passes_mod_97(std::string_view iban);

}  // namespace hark::redact
