#include "gpt/train/segments.h"

#include <algorithm>

namespace hark::gpt {
namespace {

// The ranks' parts of the parameters are whole lines of the cache and whole vectors.
constexpr int64_t kPartMultiple = 64;

// Of a block whose gradients are worth summing by themselves beside backward, on a GPU: smaller
// calls cost the products more than they hide (docs/kernels/training.md).
constexpr int64_t kBlockBesideOnGpu = 24 << 20;  // floats: 96 MiB

int64_t multiple_of(const Communicator& ranks) {
    return ranks.alone() ? 1 : kPartMultiple * ranks.size();
}

int64_t up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

}  // namespace

int64_t padded_size(const ParameterLayout& layout, const Communicator& ranks) {
    return up(layout.size(), multiple_of(ranks));
}

// Where that is no multiple, a segment leaves its first elements to the one below and has some of
// the one above, which are done before its own.
std::vector<Segment> segments_of(const Context& ctx, const ParameterLayout& layout,
                                 const Communicator& ranks) {
    const int64_t multiple = multiple_of(ranks), size = padded_size(layout, ranks);
    std::vector<Segment> segments;
    const auto add = [&](int64_t begin, int64_t end, int64_t block) {
        if (begin == end) return;
        const int64_t each = (end - begin) / ranks.size(), own = begin + each * ranks.rank();
        segments.push_back({{begin, end}, {own, own + each}, block});
    };
    if (ctx.on_cuda() && layout.block(1) - layout.block(0) < kBlockBesideOnGpu) {
        add(0, size, Segment::kLast);
        return segments;
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
    add(0, end, Segment::kLast);
    return segments;
}

}  // namespace hark::gpt
