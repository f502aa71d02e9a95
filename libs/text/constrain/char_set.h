// Sets of code points, and the bytes that they are in a text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/constrain/grammar.h"

namespace hark {

struct CharRange {
    char32_t first = 0, last = 0;
    auto operator<=>(const CharRange&) const = default;
};

// Unicode scalar values: surrogates are in no set.
class CharSet {
  public:
    CharSet() = default;
    // Any ranges, in any order.
    explicit CharSet(std::vector<CharRange> ranges);
    static CharSet of(char32_t one) { return CharSet({{one, one}}); }
    static const CharSet& all();

    // Sorted, apart from one another.
    const std::vector<CharRange>& ranges() const { return ranges_; }
    bool empty() const { return ranges_.empty(); }
    bool contains(char32_t one) const;
    CharSet operator|(const CharSet& other) const;
    CharSet operator&(const CharSet& other) const;
    CharSet operator~() const;
    CharSet operator-(const CharSet& other) const { return *this & ~other; }
    auto operator<=>(const CharSet&) const = default;

  private:
    std::vector<CharRange> ranges_;
};

// One of the set's characters in UTF-8.
Grammar::Expr utf8_char(Grammar& grammar, const CharSet& set);
// One of them in a JSON string, each in one spelling: itself, or its escape if it needs one (the
// short one, else \u00xx).
Grammar::Expr json_char(Grammar& grammar, const CharSet& set);
// One of any in a JSON string, in any spelling that is valid JSON: a short escape, \uxxxx, or a
// pair of those for one above U+FFFF.
Grammar::Expr any_json_char(Grammar& grammar);
// The text as a JSON string with its quotation marks, spelled as json_char() does.
std::string json_spelling(std::string_view text);

}  // namespace hark
