// The rows of a file of vectors that are closest to other vectors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/files/io.h"

namespace hark::gpt {

struct Match {
    int64_t row = 0;  // of the file, from 0
    float score = 0;  // the product of the two vectors: the cosine of those of length 1
};

// Reads rows of little-endian float32, as long as each of `vectors`, to the end of `rows`. Returns
// for each vector its `matches` best rows, the best first, the earlier of equals first. Rows with a
// NaN are skipped. Throws Error for a file that has no rows or ends within one.
std::vector<std::vector<Match>> nearest_rows(ByteReader& rows,
                                             std::span<const std::vector<float>> vectors,
                                             int64_t matches);

}  // namespace hark::gpt
