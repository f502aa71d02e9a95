#include "whisper/transcribe/logit_constraints.h"

#include <algorithm>
#include <limits>

#include "kernels/sampling/distribution.h"

namespace hark::whisper {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

void forbid(std::span<float> logits, int32_t begin, int32_t end) {
    end = std::min<int32_t>(end, static_cast<int32_t>(logits.size()));
    if (begin < end) std::fill(logits.begin() + begin, logits.begin() + end, kForbidden);
}

}  // namespace

Forbidden forbidden_by_timestamps(const Rules& rules, std::span<const int32_t> sampled,
                                  int32_t n_vocab) {
    Forbidden forbidden{0, rules.timestamp_begin, n_vocab - 1};
    if (!rules.timestamps) return forbidden;
    if (sampled.empty()) {
        forbidden.text_end = rules.timestamp_begin;
        if (rules.max_initial_timestamp >= 0)
            forbidden.timestamp_last = rules.timestamp_begin + rules.max_initial_timestamp;
        return forbidden;
    }
    const auto is_timestamp = [&](int32_t token) { return token >= rules.timestamp_begin; };
    const size_t n = sampled.size();
    const bool last = n >= 1 && is_timestamp(sampled[n - 1]);
    const bool penultimate = n < 2 || is_timestamp(sampled[n - 2]);

    // A timestamp never falls below the newest one; a second one in a row may repeat it (it opens
    // the next segment), any other must exceed it.
    for (size_t i = n; i-- > 0;) {
        if (!is_timestamp(sampled[i])) continue;
        forbidden.timestamp_end = sampled[i] + (last && !penultimate ? 0 : 1);
        break;
    }
    if (last && penultimate) forbidden.timestamp_end = n_vocab;  // text must follow a pair
    if (last && !penultimate) forbidden.text_end = rules.eot;  // a segment's end has no text behind
    return forbidden;
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

void apply_rules(const Rules& rules, std::span<const int32_t> sampled, std::span<float> logits) {
    const bool first = sampled.empty();
    if (rules.repetition_penalty != 1 || rules.no_repeat_ngram > 0) {
        std::vector<int32_t> text;
        for (int32_t id : sampled)
            if (id < rules.eot) text.push_back(id);
        if (rules.repetition_penalty != 1)
            penalize_repetition(logits, text, rules.repetition_penalty);
        for (int32_t id : repeating_tokens(text, rules.no_repeat_ngram)) logits[id] = kForbidden;
    }
    if (first)
        for (int32_t id : rules.blank) logits[id] = kForbidden;
    for (int32_t id : rules.suppressed) logits[id] = kForbidden;
    if (!rules.timestamps) return;

    logits[rules.no_timestamps] = kForbidden;
    const int32_t n_vocab = static_cast<int32_t>(logits.size());
    const Forbidden by_timestamps = forbidden_by_timestamps(rules, sampled, n_vocab);
    forbid(logits, 0, by_timestamps.text_end);
    forbid(logits, rules.timestamp_begin, by_timestamps.timestamp_end);
    forbid(logits, by_timestamps.timestamp_last + 1, n_vocab);

    const std::span<float> text = logits.first(rules.timestamp_begin);
    const float likeliest_text = *std::max_element(text.begin(), text.end());
    if (log_sum_exp(logits.subspan(rules.timestamp_begin)) > likeliest_text)
        forbid(logits, 0, rules.timestamp_begin);
}

}  // namespace hark::whisper
