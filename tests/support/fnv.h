// A hash by which golden files tell long texts.
#pragma once

#include <string>
#include <string_view>

#include "core/files/fingerprint.h"

namespace hark::test {

// 64-bit FNV-1a in 16 hexadecimal digits.
inline std::string fnv1a(std::string_view bytes) {
    Fingerprint fingerprint;
    fingerprint.add(bytes.data(), bytes.size());
    return fingerprint.text();
}

}  // namespace hark::test
