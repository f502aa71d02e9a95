#include "whisper/transcribe/search.h"

#include <algorithm>
#include <cmath>

#include "kernels/sampling/distribution.h"
#include "whisper/transcribe/logit_constraints.h"

namespace hark::whisper {
namespace {

struct Continuation {
    size_t row;
    int32_t token;
    float sum;  // f32, as in the reference
};

// Likeliest first; equal ones in the order of rows, then candidates.
std::vector<Continuation> ranked(std::span<const Row> rows,
                                 std::span<const std::vector<Candidate>> candidates) {
    std::vector<Continuation> all;
    for (size_t i = 0; i < rows.size(); ++i)
        for (const Candidate& candidate : candidates[i])
            all.push_back(
                {i, candidate.token, static_cast<float>(rows[i].sum_logprob) + candidate.logprob});
    std::stable_sort(all.begin(), all.end(),
                     [](const Continuation& a, const Continuation& b) { return a.sum > b.sum; });
    return all;
}

Row continued(const Row& row, const Continuation& by) {
    Row next = row;
    next.parent = static_cast<int32_t>(by.row);
    next.tokens[next.length++] = by.token;
    next.sum_logprob = by.sum;
    return next;
}

}  // namespace

int32_t choose_token(std::span<const float> logits, double temperature, Random& random) {
    return temperature == 0 ? argmax(logits) : draw(logits, temperature, random.uniform());
}

void append_token(Row& row, std::span<const float> logits, int32_t token, int32_t eot,
                  int32_t max_length) {
    append_token(row, token, logits[token] - log_sum_exp(logits), eot, max_length);
}

void append_token(Row& row, int32_t token, double logprob, int32_t eot, int32_t max_length) {
    row.sum_logprob += logprob;
    row.tokens[row.length++] = token;
    row.finished = token == eot || row.length > max_length;
}

std::vector<Candidate> best_candidates(std::span<const float> logits, size_t n) {
    std::vector<Candidate> best;
    for (size_t id = 0; id < logits.size(); ++id) {
        const float logit = logits[id];
        if (logit == kMasked || (best.size() == n && logit <= best.back().logprob)) continue;
        const auto place = std::find_if(best.begin(), best.end(), [&](const Candidate& other) {
            return other.logprob < logit;
        });
        best.insert(place, {static_cast<int32_t>(id), logit});
        if (best.size() > n) best.pop_back();
    }
    const double total = log_sum_exp(logits);
    for (Candidate& candidate : best)
        candidate.logprob = static_cast<float>(candidate.logprob - total);
    return best;
}

bool advance_beams(std::vector<Row>& rows, std::span<const std::vector<Candidate>> candidates,
                   std::vector<Row>& finished, const BeamOptions& options) {
    std::vector<Row> next;
    for (const Continuation& by : ranked(rows, candidates)) {
        if (by.token == options.eot) {
            if (finished.size() >= options.max_finished) continue;
            finished.push_back(continued(rows[by.row], by));
            finished.back().finished = true;
            continue;
        }
        next.push_back(continued(rows[by.row], by));
        if (next.size() == options.size) break;
    }
    rows = std::move(next);
    return rows.empty() || finished.size() >= options.max_finished;
}

std::vector<Row> beam_results(std::span<const Row> rows, std::span<const Row> finished,
                              const BeamOptions& options) {
    std::vector<Row> results(finished.begin(), finished.end());
    std::vector<size_t> order(rows.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return rows[a].sum_logprob < rows[b].sum_logprob; });
    for (size_t i = order.size(); i-- > 0 && results.size() < options.size;)
        results.push_back(rows[order[i]]);
    return results;
}

std::span<const int32_t> text_tokens(const Row& row, int32_t eot) {
    const std::span<const int32_t> sampled = row.sampled();
    const auto end = std::find(sampled.begin(), sampled.end(), eot);
    return sampled.first(static_cast<size_t>(end - sampled.begin()));
}

size_t best_row(std::span<const Row> rows, int32_t eot, std::optional<double> length_penalty) {
    size_t best = 0;
    double best_score = -std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < rows.size(); ++i) {
        // Without text the score is -infinity. The constraints do not allow such rows, as in the
        // reference.
        const double n = static_cast<double>(text_tokens(rows[i], eot).size());
        const double by = length_penalty ? std::pow((5 + n) / 6, *length_penalty) : n;
        const double score = rows[i].sum_logprob / by;
        if (score > best_score) best = i, best_score = score;
    }
    return best;
}

}  // namespace hark::whisper
