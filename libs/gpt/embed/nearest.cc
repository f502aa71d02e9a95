#include "gpt/embed/nearest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace hark::gpt {
namespace {

constexpr size_t kVectorsAtOnce = 1024;

bool is_better(const Match& a, const Match& b) {
    return a.score != b.score ? a.score > b.score : a.row < b.row;
}

// A heap whose first element is the worst of the best.
void add_match(std::vector<Match>& best, const Match& match, int64_t matches) {
    if (std::ssize(best) == matches) {
        if (!is_better(match, best.front())) return;
        std::pop_heap(best.begin(), best.end(), is_better);
        best.pop_back();
    }
    best.push_back(match);
    std::push_heap(best.begin(), best.end(), is_better);
}

}  // namespace

std::vector<std::vector<Match>> nearest_rows(ByteReader& rows,
                                             std::span<const std::vector<float>> vectors,
                                             int64_t matches) {
    std::vector<std::vector<Match>> best(vectors.size());
    if (vectors.empty()) return best;
    const size_t width = vectors[0].size(), row_bytes = width * sizeof(float);
    std::vector<float> part(kVectorsAtOnce * width);
    int64_t first = 0;
    for (;;) {
        const size_t bytes = rows.read(part.data(), part.size() * sizeof(float));
        require(bytes % row_bytes == 0, rows.name(), ": expected rows of ", width,
                " float32 values, found ", bytes % row_bytes, " bytes at the end");
        const size_t count = bytes / row_bytes;
        for (size_t row = 0; row < count; ++row)
            for (size_t i = 0; i < vectors.size(); ++i) {
                const float score = std::inner_product(vectors[i].begin(), vectors[i].end(),
                                                       part.data() + row * width, 0.0f);
                if (!std::isnan(score))
                    add_match(best[i], {first + static_cast<int64_t>(row), score}, matches);
            }
        first += static_cast<int64_t>(count);
        if (count < kVectorsAtOnce) break;
    }
    require(first > 0, rows.name(), ": expected rows of ", width, " float32 values, found none");
    for (std::vector<Match>& of_one : best) std::sort(of_one.begin(), of_one.end(), is_better);
    return best;
}

}  // namespace hark::gpt
