#include "whisper/search.h"

#include <algorithm>
#include <limits>

#include "kernels/distribution.h"

namespace hark::whisper {

int32_t choose_token(std::span<const float> logits, double temperature, Random& random) {
    return temperature == 0 ? argmax(logits) : draw(logits, temperature, random.uniform());
}

void append_token(Row& row, std::span<const float> logits, int32_t token, int32_t eot,
                  int32_t max_length) {
    row.sum_logprob += logits[token] - log_sum_exp(logits);
    row.tokens[row.length++] = token;
    row.finished = token == eot || row.length > max_length;
}

std::span<const int32_t> text_tokens(const Row& row, int32_t eot) {
    const std::span<const int32_t> sampled = row.sampled();
    const auto end = std::find(sampled.begin(), sampled.end(), eot);
    return sampled.first(static_cast<size_t>(end - sampled.begin()));
}

size_t best_row(std::span<const Row> rows, int32_t eot) {
    size_t best = 0;
    double best_score = -std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < rows.size(); ++i) {
        // A row without text divides by zero: minus infinity, last of all, as in the reference
        // (where numpy's argmax meets the same value).
        const double n = static_cast<double>(text_tokens(rows[i], eot).size());
        const double score = rows[i].sum_logprob / n;
        if (score > best_score) best = i, best_score = score;
    }
    return best;
}

}  // namespace hark::whisper
