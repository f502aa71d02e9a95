#include "core/error.h"

#include <cstdio>
#include <new>

namespace hark {
namespace {

bool is_bad_alloc(const std::exception& why) {
    return dynamic_cast<const std::bad_alloc*>(&why) != nullptr;
}

}  // namespace

bool is_out_of_memory(const std::exception& why) {
    return is_bad_alloc(why) || dynamic_cast<const OutOfMemory*>(&why) != nullptr;
}

std::string failure_text(const std::exception& why) {
    return is_bad_alloc(why) ? "out of memory" : why.what();
}

namespace detail {

void Part::append_to(std::string& text) const {
    switch (kind_) {
        case Kind::text:
            text.append(value_.text, size_);
            break;
        case Kind::character:
            text += value_.character;
            break;
        case Kind::integer:
            text += std::to_string(value_.integer);
            break;
        case Kind::natural:
            text += std::to_string(value_.natural);
            break;
        case Kind::real: {
            char digits[32];
            std::snprintf(digits, sizeof digits, "%g", value_.real);
            text += digits;
            break;
        }
        case Kind::thing:
            text += value_.thing.describe(value_.thing.it);
            break;
    }
}

std::string join(std::initializer_list<Part> parts) {
    std::string text;
    for (const Part& part : parts) part.append_to(text);
    return text;
}

void throw_error(std::initializer_list<Part> parts) { throw Error(join(parts)); }

void throw_usage_error(std::initializer_list<Part> parts) { throw UsageError(join(parts)); }

}  // namespace detail
}  // namespace hark
