#include "text/tokenizer/charsmap.h"

#include <cstdint>
#include <cstring>

#include "core/error.h"

namespace hark {
namespace {

uint32_t number_at(std::string_view bytes, size_t i) {
    uint32_t value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
}

size_t offset_of(uint32_t unit) { return static_cast<size_t>(unit >> 10) << ((unit & 0x200) >> 6); }

// A step goes from a unit to the one at its index ^ its offset ^ a byte of the text, and to the
// value of a leaf, which is a place among the strings.
bool is_sound(std::string_view units, std::string_view strings) {
    const size_t count = units.size() / 4;
    for (size_t i = 0; i < count; ++i) {
        const uint32_t unit = number_at(units, i);
        if (unit >> 31) continue;  // a value: no step leads on from it
        const size_t next = i ^ offset_of(unit);
        if ((next | 0xFF) >= count) return false;
        const bool has_leaf = unit >> 8 & 1;
        if (has_leaf && (number_at(units, next) & 0x7FFFFFFF) >= strings.size()) return false;
    }
    return strings.back() == '\0';
}

}  // namespace

// A number of bytes, a double array of that many bytes, the strings.
Charsmap::Charsmap(std::string_view table, const std::string& where) {
    if (table.empty()) return;
    bool sound = table.size() >= 4;
    const size_t size = sound ? number_at(table, 0) : 0;
    if (sound) table.remove_prefix(4);
    sound = sound && size < table.size() && size % 1024 == 0 && size > 0;
    if (sound) {
        units_ = table.substr(0, size);
        strings_ = table.substr(size);
    }
    require(sound && is_sound(units_, strings_), where,
            ": the table of the model's normaliser is broken");
}

uint32_t Charsmap::unit(size_t i) const { return number_at(units_, i); }

Charsmap::Found Charsmap::find(std::string_view text) const {
    Found found;
    if (units_.empty()) return found;
    size_t node = offset_of(unit(0));
    for (size_t at = 0; at < text.size(); ++at) {
        const auto byte = static_cast<unsigned char>(text[at]);
        node ^= byte;
        const uint32_t here = unit(node);
        if ((here & 0x800000FF) != byte) break;
        node ^= offset_of(here);
        if ((here >> 8 & 1) == 0) continue;
        const size_t begin = unit(node) & 0x7FFFFFFF;
        found = {std::string_view(strings_.c_str() + begin), at + 1};
    }
    return found;
}

}  // namespace hark
