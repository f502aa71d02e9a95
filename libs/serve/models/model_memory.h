// How much of the server's memory a model takes, before it is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace hark {
struct Precision;
namespace models {
struct ModelHandle;
}
}  // namespace hark

namespace hark::serve {

// Bytes.
struct ModelNeed {
    int64_t weights = 0;
    int64_t scratch = 0;          // of its passes, estimated
    int64_t least = 0, most = 0;  // of its caches: less is not enough, more has no use

    int64_t smallest() const { return weights + scratch + least; }
};

// The model's weights in that precision; if they stay as they are stored, and that is quantised,
// the size of its files. Throws Error if the files cannot be read.
int64_t weight_bytes(const models::ModelHandle& model, const std::filesystem::path& path,
                     const Precision& precision);

// Divides bytes among the models' caches: equally, but none has more than it has use for, or less
// than its least.
std::vector<int64_t> share_caches(int64_t bytes, std::span<const ModelNeed> needs);

// "1.25 GB"
std::string gigabytes(int64_t bytes);

}  // namespace hark::serve
