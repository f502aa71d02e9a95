// Errors: libraries throw, tool_main alone prints and exits.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace hark {

// Bad input or a failed run: the tool ends with exit status 1.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// A wrong command line: the tool ends with exit status 2.
class UsageError : public Error {
  public:
    using Error::Error;
};

// A device's memory does not suffice; the message says what was needed and what was free. Who knows
// how to take less adds that.
class OutOfMemory : public Error {
  public:
    using Error::Error;
};

template <class... Parts>
std::string concat(const Parts&... parts) {
    std::ostringstream text;
    (text << ... << parts);
    return text.str();
}

// Throws Error with the parts joined: what was expected, what was found, what to do.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
    throw Error(concat(parts...));
}

template <class... Parts>
void require(bool holds, const Parts&... parts) {
    if (!holds) [[unlikely]]
        fail(parts...);
}

// Throws UsageError unless the command line makes sense.
template <class... Parts>
void require_usage(bool holds, const Parts&... parts) {
    if (!holds) throw UsageError(concat(parts...));
}

}  // namespace hark
