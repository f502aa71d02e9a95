// Lists of names: whether one is among them, and how a message shows them.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>

namespace hark {

template <class Range, class Value>
bool contains(const Range& range, const Value& value) {
    return std::find(std::begin(range), std::end(range), value) != std::end(range);
}

// "a, b, c". text_of(element) or an element's member is the text.
template <class Range, class Text = std::identity>
std::string joined(const Range& range, std::string_view between = ", ", const Text& text_of = {}) {
    std::string all;
    for (const auto& element : range) {
        if (!all.empty()) all += between;
        all += std::invoke(text_of, element);
    }
    return all;
}

}  // namespace hark
