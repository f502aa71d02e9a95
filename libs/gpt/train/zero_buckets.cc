#include "gpt/train/zero_buckets.h"

#include <algorithm>

namespace hark::gpt {
namespace {

// A rank's part of a bucket is then whole cache lines and whole vectors.
constexpr int64_t kPartMultiple = 64;

// The least block whose gradients are summed during backward on a GPU: smaller calls cost the
// products more than they hide (docs/kernels/training.md).
constexpr int64_t kMinGpuBlock = 24 << 20;  // floats: 96 MiB

int64_t multiple_of(const Communicator& ranks) {
    return ranks.alone() ? 1 : kPartMultiple * ranks.size();
}

int64_t up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

}  // namespace

int64_t padded_size(const ParameterLayout& layout, const Communicator& ranks) {
    return up(layout.size(), multiple_of(ranks));
}

// A block that begins at no multiple leaves its first elements to the block below. It takes some of
// the block above, whose gradients are complete earlier.
std::vector<ZeroBucket> zero_buckets(const Context& ctx, const ParameterLayout& layout,
                                     const Communicator& ranks) {
    const int64_t multiple = multiple_of(ranks), size = padded_size(layout, ranks);
    std::vector<ZeroBucket> buckets;
    const auto add = [&](int64_t begin, int64_t end, int64_t block) {
        if (begin == end) return;
        const int64_t each = (end - begin) / ranks.size(), local = begin + each * ranks.rank();
        buckets.push_back({{begin, end}, {local, local + each}, block});
    };
    if (ctx.on_cuda() && layout.block(1) - layout.block(0) < kMinGpuBlock) {
        add(0, size, ZeroBucket::kLast);
        return buckets;
    }
    const int64_t vectors =
        std::max(up(layout.tables(), multiple), layout.decayed() / multiple * multiple);
    int64_t end = vectors;
    for (int64_t block = layout.blocks(); block-- > 0;) {
        const int64_t begin = std::min(up(layout.block(block), multiple), vectors);
        add(begin, end, block);
        end = begin;
    }
    add(vectors, size, 0);
    add(0, end, ZeroBucket::kLast);
    return buckets;
}

}  // namespace hark::gpt
