// Errors: libraries throw, tool_main alone prints and exits.
#pragma once

#include <concepts>
#include <exception>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

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

// Whether memory did not suffice, a device's (OutOfMemory) or the host's (std::bad_alloc).
bool is_out_of_memory(const std::exception& why);
// What users are told of a failure: "out of memory" in place of the name of std::bad_alloc.
std::string failure_text(const std::exception& why);

namespace detail {

// One part of a message. It refers to text, so it lives no longer than its expression. It has no
// stream of its own: a stream per call took a quarter of a build's time.
class Part {
  public:
    Part(std::string_view text) : kind_(Kind::text), size_(text.size()) { value_.text = text.data(); }
    Part(const std::string& text) : Part(std::string_view(text)) {}
    Part(const char* text) : Part(std::string_view(text)) {}
    Part(char character) : kind_(Kind::character) { value_.character = character; }
    Part(std::signed_integral auto number) : kind_(Kind::integer) { value_.integer = number; }
    Part(std::unsigned_integral auto number) : kind_(Kind::natural) { value_.natural = number; }
    Part(std::floating_point auto number) : kind_(Kind::real) {
        value_.real = static_cast<double>(number);
    }
    // A thing with a describe(), called for what has failed alone.
    template <class Thing>
        requires requires(const Thing& thing) {
            { describe(thing) } -> std::same_as<std::string>;
        }
    Part(const Thing& thing) : kind_(Kind::thing) {
        value_.thing = {&thing, [](const void* it) { return describe(*static_cast<const Thing*>(it)); }};
    }

    // Numbers as std::ostream writes them: six digits of a real one.
    void append_to(std::string& text) const;

  private:
    enum class Kind { text, character, integer, natural, real, thing };

    union {
        const char* text;
        char character;
        long long integer;
        unsigned long long natural;
        double real;
        struct {
            const void* it;
            std::string (*describe)(const void*);
        } thing;
    } value_;
    Kind kind_;
    size_t size_ = 0;
};

std::string join(std::initializer_list<Part> parts);
[[noreturn]] void throw_error(std::initializer_list<Part> parts);
[[noreturn]] void throw_usage_error(std::initializer_list<Part> parts);

}  // namespace detail

// The parts as one text.
template <class... Parts>
std::string concat(const Parts&... parts) {
    return detail::join({detail::Part(parts)...});
}

// Throws Error with the parts joined: what was expected, what was found, what to do.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
    detail::throw_error({detail::Part(parts)...});
}

template <class... Parts>
void require(bool holds, const Parts&... parts) {
    if (!holds) [[unlikely]]
        detail::throw_error({detail::Part(parts)...});
}

// Throws UsageError unless the command line makes sense.
template <class... Parts>
void require_usage(bool holds, const Parts&... parts) {
    if (!holds) [[unlikely]]
        detail::throw_usage_error({detail::Part(parts)...});
}

}  // namespace hark
