// The table by which a sentencepiece model normalises text: strings and what replaces them, in a
// double array. Source: sentencepiece, normalizer.cc; Aoe 1989, "An Efficient Digital Search
// Algorithm by Using a Double-Array Structure".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hark {

class Charsmap {
  public:
    Charsmap() = default;  // changes nothing
    // Throws Error beginning with `where` if a step in the table leads out of it.
    Charsmap(std::string_view table, const std::string& where);

    // The longest string of the table that `text` begins with: what replaces it, and its length,
    // 0 if there is none.
    struct Found {
        std::string_view replacement;
        size_t length = 0;
    };
    Found find(std::string_view text) const;

  private:
    uint32_t unit(size_t i) const;

    std::string units_;    // of 4 bytes
    std::string strings_;  // each ends in a zero byte
};

}  // namespace hark
