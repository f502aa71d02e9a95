#include "text/tokens/sentencepiece_check.h"

#include <cstdint>
#include <cstring>

namespace hark {
namespace {

// Fields of a protocol buffer, one after another.
class Fields {
  public:
    explicit Fields(std::string_view bytes) : rest_(bytes) {}

    // Moves to the next field; false at the end and where the bytes are none (`broken`).
    bool next() {
        if (rest_.empty()) return false;
        const uint64_t key = varint();
        number = key >> 3;
        content = {};
        switch (key & 7) {
            case 0:
                varint();
                break;
            case 1:
                take(8);
                break;
            case 2:
                content = take(varint());
                break;
            case 5:
                take(4);
                break;
            default:
                broken = true;
        }
        return !broken;
    }

    uint64_t number = 0;
    std::string_view content;  // of a field that has a length: a message or bytes
    bool broken = false;

  private:
    uint64_t varint() {
        uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const std::string_view byte = take(1);
            if (broken) return 0;
            value |= static_cast<uint64_t>(byte[0] & 0x7F) << shift;
            if ((byte[0] & 0x80) == 0) return value;
        }
        broken = true;
        return 0;
    }
    std::string_view take(uint64_t bytes) {
        if (bytes > rest_.size()) broken = true;
        if (broken) return {};
        const std::string_view taken = rest_.substr(0, bytes);
        rest_.remove_prefix(bytes);
        return taken;
    }

    std::string_view rest_;
};

uint32_t number_at(std::string_view bytes, size_t i) {
    uint32_t value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
}

// A number of bytes, a double array of that many bytes, strings that each end in a zero byte. A
// step goes from a unit to the one at its index ^ its offset ^ a byte of the text, and to the value
// of a leaf, which is a place among the strings.
bool is_sound_table(std::string_view table) {
    if (table.empty()) return true;
    if (table.size() < 4) return false;
    const size_t size = number_at(table, 0);
    table.remove_prefix(4);
    if (size >= table.size() || size % 1024 != 0 || size == 0) return false;
    const std::string_view strings = table.substr(size);
    const size_t units = size / 4;
    for (size_t i = 0; i < units; ++i) {
        const uint32_t unit = number_at(table, i);
        if (unit >> 31) continue;  // a value: no step leads on from it
        const size_t next = i ^ (static_cast<size_t>(unit >> 10) << ((unit & 0x200) >> 6));
        if ((next | 0xFF) >= units) return false;
        const bool has_leaf = unit >> 8 & 1;
        if (has_leaf && (number_at(table, next) & 0x7FFFFFFF) >= strings.size()) return false;
    }
    return strings.back() == '\0';
}

}  // namespace

bool has_sound_tables(std::string_view model) {
    constexpr uint64_t kNormalizer = 3, kDenormalizer = 5, kTable = 2;
    Fields fields(model);
    while (fields.next()) {
        if (fields.number != kNormalizer && fields.number != kDenormalizer) continue;
        Fields inner(fields.content);
        while (inner.next())
            if (inner.number == kTable && !is_sound_table(inner.content)) return false;
        if (inner.broken) return false;
    }
    return !fields.broken;
}

}  // namespace hark
