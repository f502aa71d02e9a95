#include "text/jinja/text.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace hark::jinja {

void Text::append(std::string_view bytes, bool from_input) {
    if (bytes.empty()) return;
    require(bytes.size() <= kMaxTextBytes - size(), "a text is longer than ", kMaxTextBytes,
            " bytes");
    const bool now_input = edges_.size() % 2 == 1;
    if (now_input != from_input) edges_.push_back(size());
    bytes_.append(bytes);
}

void Text::append(const Text& other, size_t begin, size_t end) {
    if (&other == this) return append(Text(other), begin, end);
    auto edge = std::upper_bound(other.edges_.begin(), other.edges_.end(), begin);
    bool from_input = (edge - other.edges_.begin()) % 2 == 1;
    while (begin < end) {
        const size_t next = edge == other.edges_.end() ? end : std::min(*edge++, end);
        append(std::string_view(other.bytes_).substr(begin, next - begin), from_input);
        begin = next;
        from_input = !from_input;
    }
}

Text Text::slice(size_t begin, size_t end) const {
    Text part;
    part.append(*this, begin, std::max(begin, std::min(end, size())));
    part.is_markup = is_markup;
    return part;
}

bool Text::is_input(size_t at) const {
    return (std::upper_bound(edges_.begin(), edges_.end(), at) - edges_.begin()) % 2 == 1;
}

size_t byte_offset(std::string_view text, size_t code_point) {
    for (size_t at = 0; at < text.size(); ++at)
        if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80 && code_point-- == 0) return at;
    return text.size();
}

std::vector<size_t> code_point_offsets(std::string_view text) {
    std::vector<size_t> offsets;
    for (size_t at = 0; at < text.size(); ++at)
        if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) offsets.push_back(at);
    offsets.push_back(text.size());
    return offsets;
}

size_t find_bytes(std::string_view text, std::string_view wanted, size_t from) {
    if (from > text.size()) return std::string_view::npos;
    if (wanted.empty()) return from;
    // memmem takes linear time; std::string_view::find does not.
    const void* found =
        ::memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
    return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data())
                 : std::string_view::npos;
}

size_t find_last_bytes(std::string_view text, std::string_view wanted) {
    const std::string reversed(text.rbegin(), text.rend());
    const std::string reversed_wanted(wanted.rbegin(), wanted.rend());
    const size_t found = find_bytes(reversed, reversed_wanted, 0);
    return found == std::string_view::npos ? found : text.size() - found - wanted.size();
}

}  // namespace hark::jinja
