// Fields of a protocol buffer, one after another.
// Source: protobuf.dev/programming-guides/encoding.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace hark {

class ProtobufFields {
  public:
    explicit ProtobufFields(std::string_view bytes) : rest_(bytes) {}

    // Moves to the next field; false at the end and where the bytes are none (`broken`).
    bool next() {
        if (rest_.empty()) return false;
        const uint64_t key = varint();
        number = key >> 3;
        kind = static_cast<int>(key & 7);
        content = {};
        value = 0;
        switch (kind) {
            case 0:
                value = varint();
                break;
            case 1:
                take(8);
                break;
            case 2:
                content = take(varint());
                break;
            case 5:
                content = take(4);
                break;
            default:
                broken = true;
        }
        return !broken;
    }

    float as_float() const {
        float number = 0;
        if (content.size() == sizeof number) std::memcpy(&number, content.data(), sizeof number);
        return number;
    }

    uint64_t number = 0;
    int kind = 0;  // 0: value; 2: content; 5: as_float()
    uint64_t value = 0;
    std::string_view content;  // of a field that has a length: a message or bytes
    bool broken = false;

  private:
    uint64_t varint() {
        uint64_t made = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const std::string_view byte = take(1);
            if (broken) return 0;
            made |= static_cast<uint64_t>(byte[0] & 0x7F) << shift;
            if ((byte[0] & 0x80) == 0) return made;
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

}  // namespace hark
