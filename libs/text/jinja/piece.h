// A part of a template's output.
#pragma once

#include <string>

namespace hark::jinja {

struct Piece {
    std::string text;
    bool from_input = false;  // else from the template

    bool operator==(const Piece&) const = default;
};

}  // namespace hark::jinja
