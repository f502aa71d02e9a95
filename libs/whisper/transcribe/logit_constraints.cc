#include "whisper/transcribe/logit_constraints.h"

#include <algorithm>
#include <limits>

#include "kernels/sampling/distribution.h"

namespace hark::whisper {
namespace {

void mask(std::span<float> logits, int32_t begin, int32_t end) {
    end = std::min<int32_t>(end, static_cast<int32_t>(logits.size()));
    if (begin < end) std::fill(logits.begin() + begin, logits.begin() + end, kMasked);
}

}  // namespace

TimestampMask timestamp_mask(const LogitConstraints& constraints, std::span<const int32_t> sampled,
                             int32_t n_vocab) {
    TimestampMask result{0, constraints.timestamp_begin, n_vocab - 1};
    if (!constraints.timestamps) return result;
    if (sampled.empty()) {
        result.text_end = constraints.timestamp_begin;
        if (constraints.max_initial_timestamp >= 0)
            result.timestamp_last = constraints.timestamp_begin + constraints.max_initial_timestamp;
        return result;
    }
    const auto is_timestamp = [&](int32_t token) { return token >= constraints.timestamp_begin; };
    const size_t n = sampled.size();
    const bool last = n >= 1 && is_timestamp(sampled[n - 1]);
    const bool penultimate = n < 2 || is_timestamp(sampled[n - 2]);

    // A timestamp is never below the last one. The second of a pair, which opens the next segment,
    // may equal it; any other must exceed it.
    for (size_t i = n; i-- > 0;) {
        if (!is_timestamp(sampled[i])) continue;
        result.timestamp_end = sampled[i] + (last && !penultimate ? 0 : 1);
        break;
    }
    if (last && penultimate) result.timestamp_end = n_vocab;      // text must follow a pair
    if (last && !penultimate) result.text_end = constraints.eot;  // no text after a segment's end
    return result;
}

std::vector<int32_t> repeating_tokens(std::span<const int32_t> text, int64_t n) {
    std::vector<int32_t> tokens;
    if (n < 1 || std::ssize(text) < n) return tokens;
    const size_t before = static_cast<size_t>(n - 1);
    const std::span<const int32_t> end = text.last(before);
    for (size_t i = 0; i + before < text.size(); ++i)
        if (std::equal(end.begin(), end.end(), text.begin() + static_cast<ptrdiff_t>(i)))
            tokens.push_back(text[i + before]);
    return tokens;
}

void apply_constraints(const LogitConstraints& constraints, std::span<const int32_t> sampled,
                       std::span<float> logits) {
    const bool first = sampled.empty();
    if (constraints.repetition_penalty != 1 || constraints.no_repeat_ngram > 0) {
        std::vector<int32_t> text;
        for (int32_t id : sampled)
            if (id < constraints.eot) text.push_back(id);
        if (constraints.repetition_penalty != 1)
            penalize_repetition(logits, text, constraints.repetition_penalty);
        for (int32_t id : repeating_tokens(text, constraints.no_repeat_ngram)) logits[id] = kMasked;
    }
    if (first)
        for (int32_t id : constraints.blank) logits[id] = kMasked;
    for (int32_t id : constraints.suppressed) logits[id] = kMasked;
    if (!constraints.timestamps) return;

    logits[constraints.no_timestamps] = kMasked;
    const int32_t n_vocab = static_cast<int32_t>(logits.size());
    const TimestampMask by_timestamps = timestamp_mask(constraints, sampled, n_vocab);
    mask(logits, 0, by_timestamps.text_end);
    mask(logits, constraints.timestamp_begin, by_timestamps.timestamp_end);
    mask(logits, by_timestamps.timestamp_last + 1, n_vocab);

    const std::span<float> text = logits.first(constraints.timestamp_begin);
    const float likeliest_text = *std::max_element(text.begin(), text.end());
    if (log_sum_exp(logits.subspan(constraints.timestamp_begin)) > likeliest_text)
        mask(logits, 0, constraints.timestamp_begin);
}

}  // namespace hark::whisper
