#pragma once

#include <charconv>
#include <string>

namespace hark {

// A number in as few digits as give back the same one.
template <class Float>
std::string shortest(Float x) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

}  // namespace hark
