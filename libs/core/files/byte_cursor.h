// Reads little-endian numbers and runs of bytes one after another, never past the end.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"

namespace hark {

class ByteCursor {
  public:
    // `where` names what is read in messages. Throws Error if `at` is past the end.
    ByteCursor(std::string_view bytes, std::string where, uint64_t at = 0)
        : bytes_(bytes), where_(std::move(where)) {
        take(at);
    }

    size_t at() const { return at_; }
    size_t left() const { return bytes_.size() - at_; }

    // What is being read, for messages: "a tensor's name". Nothing as long as it is empty.
    std::string what;
    // The start of a message: `where`, then `what`.
    std::string place() const { return what.empty() ? where_ : concat(where_, ": ", what); }

    // The next n bytes. Throws Error where fewer are left.
    std::string_view take(uint64_t n) {
        if (n > left()) [[unlikely]]
            fail(place(), ": expected ", n, " bytes at byte ", at_, ", found ", left(),
                 " (truncated?)");
        const std::string_view taken = bytes_.substr(at_, n);
        at_ += n;
        return taken;
    }

    template <std::integral T>
    T number() {
        const std::string_view bytes = take(sizeof(T));
        uint64_t value = 0;
        for (size_t i = sizeof(T); i-- > 0;)
            value = value << 8 | static_cast<unsigned char>(bytes[i]);
        return static_cast<T>(value);
    }

    // The same from min to max. Throws Error where it is another.
    template <std::integral T>
    T number(T min, T max) {
        const T value = number<T>();
        if (value < min || value > max) [[unlikely]]
            fail(place(), ": expected ",
                 min == max ? concat(min) : concat("a number from ", min, " to ", max), ", found ",
                 value);
        return value;
    }

  private:
    std::string_view bytes_;
    std::string where_;
    size_t at_ = 0;
};

}  // namespace hark
