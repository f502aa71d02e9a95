#include "gpt/train/block_muon.h"

namespace hark::gpt {

// Queries, keys and values are matrices each, and so are gate and up.
void update_blocks_with_muon(Context& ctx, const ParameterLayout& layout, const Tensor& p,
                             const Tensor& m, const Tensor& g, const Tensor& clip,
                             const Muon& with) {
    for (const ParameterLayout::Entry& entry : layout.entries()) {
        if (entry.layer < 0 || entry.columns == 0) continue;
        int64_t begin = entry.offset;
        for (const int64_t rows : layout.matrices_of(entry)) {
            const int64_t end = begin + rows * entry.columns;
            const auto matrix = [&](const Tensor& all) {
                return all.slice(begin, end).reshaped({rows, entry.columns});
            };
            muon(ctx, matrix(p), matrix(m), matrix(g), clip, with);
            begin = end;
        }
    }
}

}  // namespace hark::gpt
