// A hash that tells contents apart that differ by chance: 64 bits, no protection from an attacker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace hark {

// FNV-1a. Source: Fowler, Noll, Vo; draft-eastlake-fnv, section 2.
class Fingerprint {
  public:
    void add(const void* data, size_t bytes) {
        const auto* from = static_cast<const unsigned char*>(data);
        for (size_t i = 0; i < bytes; ++i) hash_ = (hash_ ^ from[i]) * 0x100000001b3;
    }
    template <class Number>
    void add(Number number) {
        add(&number, sizeof number);
    }
    uint64_t value() const { return hash_; }
    // 16 hexadecimal digits
    std::string text() const {
        char digits[17];
        std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash_));
        return digits;
    }

  private:
    uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace hark
