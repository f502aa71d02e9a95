// Text whose bytes know whether they come from the template or from outside.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hark::jinja {

// The longest text that a template may make.
inline constexpr size_t kMaxTextBytes = size_t{16} << 20;

// Valid UTF-8. Bytes of messages, tools and arguments are input; those of the template are not, so
// that special tokens are read in the template's text alone. Slices and joins keep each byte's
// origin. Throws Error beyond kMaxTextBytes.
class Text {
  public:
    Text() = default;
    explicit Text(std::string_view bytes, bool from_input = false) { append(bytes, from_input); }

    const std::string& bytes() const { return bytes_; }
    size_t size() const { return bytes_.size(); }
    bool empty() const { return bytes_.empty(); }
    // Bytes of memory.
    size_t cost() const { return bytes_.size() + edges_.size() * sizeof(size_t); }

    void append(std::string_view bytes, bool from_input = false);
    void append(const Text& other) { append(other, 0, other.size()); }
    // other's bytes from `begin` to before `end`.
    void append(const Text& other, size_t begin, size_t end);
    Text slice(size_t begin, size_t end) const;

    bool is_input(size_t at) const;
    bool has_input() const { return !edges_.empty(); }

    // Calls f(bytes, from_input) for each longest piece of one origin.
    template <class F>
    void for_each_piece(F&& f) const {
        bool from_input = false;
        size_t begin = 0;
        for (const size_t edge : edges_) {
            if (edge > begin) f(std::string_view(bytes_).substr(begin, edge - begin), from_input);
            begin = edge;
            from_input = !from_input;
        }
        if (begin < size()) f(std::string_view(bytes_).substr(begin), from_input);
    }

    // markupsafe's Markup, which the filters safe and escape make: + escapes what is added to it.
    bool is_markup = false;

  private:
    std::string bytes_;
    std::vector<size_t> edges_;  // where the origin changes, ascending; it begins as the template's
};

// The byte at which a code point begins; the text's size beyond the last one.
size_t byte_offset(std::string_view text, size_t code_point);
// Where each code point begins, and the text's size.
std::vector<size_t> code_point_offsets(std::string_view text);

// Positions of bytes, npos if there is no match. Time is linear in both lengths.
size_t find_bytes(std::string_view text, std::string_view wanted, size_t from);
size_t find_last_bytes(std::string_view text, std::string_view wanted);

}  // namespace hark::jinja
