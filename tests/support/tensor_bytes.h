#pragma once

#include <string>

#include "core/tensor.h"

namespace hark::test {

// A host tensor's data.
inline std::string bytes_of(const Tensor& tensor) {
    return {static_cast<const char*>(tensor.data), tensor.bytes()};
}

}  // namespace hark::test
