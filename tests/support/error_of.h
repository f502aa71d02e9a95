// What a call throws.
#pragma once

#include <functional>
#include <string>

#include "core/error.h"

namespace hark::test {

// The message of the Error that f() throws, or "none".
inline std::string error_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& error) {
        return error.what();
    }
    return "none";
}

}  // namespace hark::test
