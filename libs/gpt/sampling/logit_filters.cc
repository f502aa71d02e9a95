#include "gpt/sampling/logit_filters.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "kernels/sampling/distribution.h"
#include "kernels/sampling/sampling_params.h"

namespace hark::gpt {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr double kMostDryPenalty = 1e6;

bool is_in_row(std::span<const float> logits, int32_t id) {
    return id >= 0 && static_cast<size_t>(id) < logits.size();
}

std::vector<int32_t> possible_tokens(std::span<const float> logits) {
    std::vector<int32_t> ids;
    for (size_t id = 0; id < logits.size(); ++id)
        if (logits[id] > kNever) ids.push_back(static_cast<int32_t>(id));
    return ids;
}

// For each byte of a mask, all bits of a number per bit.
using Lanes = std::array<uint32_t, 8>;
constexpr std::array<Lanes, 256> kLanes = [] {
    std::array<Lanes, 256> table{};
    for (size_t byte = 0; byte < 256; ++byte)
        for (size_t bit = 0; bit < 8; ++bit) table[byte][bit] = (byte >> bit & 1) ? ~0u : 0u;
    return table;
}();

// Without branches: the bits of a mask follow no pattern.
void keep_lanes(float* logits, const Lanes& lanes) {
    Lanes bits;
    std::memcpy(bits.data(), logits, sizeof(bits));
    for (size_t i = 0; i < 8; ++i)
        bits[i] = (bits[i] & lanes[i]) | (std::bit_cast<uint32_t>(kNever) & ~lanes[i]);
    std::memcpy(logits, bits.data(), sizeof(bits));
}

// For each place k from 1 on: how many tokens from the end of `tokens` equal those k places before
// them. The Z function of the reversed tokens. Source: Gusfield 1997, section 1.4.
std::vector<size_t> match_lengths(std::span<const int32_t> tokens) {
    const size_t n = tokens.size();
    const auto at = [&](size_t k) { return tokens[n - 1 - k]; };
    std::vector<size_t> lengths(n);
    size_t begin = 0, end = 0;  // of the match that reaches furthest
    for (size_t k = 1; k < n; ++k) {
        size_t length = k < end ? std::min(end - k, lengths[k - begin]) : 0;
        while (k + length < n && at(length) == at(k + length)) ++length;
        if (k + length > end) begin = k, end = k + length;
        lengths[k] = length;
    }
    return lengths;
}

}  // namespace

void require_any(const TokenMask& allowed, size_t vocabulary) {
    const size_t whole = std::min(vocabulary / 64, allowed.size());
    const size_t rest = vocabulary / 64 < allowed.size() ? vocabulary % 64 : 0;
    const bool any = std::any_of(allowed.begin(), allowed.begin() + static_cast<ptrdiff_t>(whole),
                                 [](uint64_t word) { return word != 0; }) ||
                     (rest > 0 && (allowed[whole] & ((uint64_t{1} << rest) - 1)) != 0);
    require(any, "no token of the model continues the text within its constraint");
}

void keep_allowed(std::span<float> logits, const TokenMask& allowed) {
    require_any(allowed, logits.size());
    for (size_t word = 0; word * 64 < logits.size(); ++word) {
        const size_t n = std::min<size_t>(64, logits.size() - word * 64);
        float* const part = logits.data() + word * 64;
        const uint64_t in_row = n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
        const uint64_t bits = word < allowed.size() ? allowed[word] & in_row : 0;
        if (bits == 0)
            std::fill_n(part, n, kNever);
        else if (bits == in_row)
            continue;
        else if (n == 64)
            for (size_t byte = 0; byte < 8; ++byte)
                keep_lanes(part + byte * 8, kLanes[bits >> (byte * 8) & 255]);
        else
            for (size_t i = 0; i < n; ++i)
                if ((bits >> i & 1) == 0) part[i] = kNever;
    }
}

void add_logit_bias(std::span<float> logits, const LogitBias& bias) {
    for (const auto& [id, value] : bias)
        if (is_in_row(logits, id)) logits[id] += static_cast<float>(value);
}

void penalize_counts(std::span<float> logits, std::span<const int32_t> text, double presence,
                     double frequency) {
    std::vector<int32_t> sorted(text.begin(), text.end());
    std::sort(sorted.begin(), sorted.end());
    for (auto at = sorted.begin(); at != sorted.end();) {
        const auto next = std::upper_bound(at, sorted.end(), *at);
        const double count = static_cast<double>(next - at);
        if (is_in_row(logits, *at)) logits[*at] -= static_cast<float>(presence + frequency * count);
        at = next;
    }
}

void penalize_loops(std::span<float> logits, std::span<const int32_t> tokens,
                    const DryOptions& options) {
    const auto breaks = [&](int32_t id) {
        return std::binary_search(options.breakers.begin(), options.breakers.end(), id);
    };
    const auto last_breaker = std::find_if(tokens.rbegin(), tokens.rend(), breaks);
    const auto longest = static_cast<size_t>(last_breaker - tokens.rbegin());
    if (longest == 0) return;
    const std::vector<size_t> lengths = match_lengths(tokens);
    std::vector<std::pair<int32_t, size_t>> followers;  // a token, the longest match before it
    for (size_t k = 1; k < tokens.size(); ++k) {
        const size_t length = std::min(lengths[k], longest);
        const int32_t next = tokens[tokens.size() - k];
        if (length > 0 && static_cast<int64_t>(length) >= options.allowed_length && !breaks(next))
            followers.emplace_back(next, length);
    }
    std::sort(followers.begin(), followers.end());
    for (size_t i = 0; i < followers.size(); ++i) {
        const auto& [id, length] = followers[i];
        if (i + 1 < followers.size() && followers[i + 1].first == id) continue;
        if (!is_in_row(logits, id)) continue;
        const double more =
            static_cast<double>(static_cast<int64_t>(length) - options.allowed_length);
        logits[id] -= static_cast<float>(
            std::min(options.multiplier * std::pow(options.base, more), kMostDryPenalty));
    }
}

void apply_temperature(std::span<float> logits, double temperature) {
    for (float& logit : logits)
        logit = hark::apply_temperature(logit, static_cast<float>(temperature));
}

void keep_top_k(std::span<float> logits, int64_t k) {
    if (k >= static_cast<int64_t>(logits.size())) return;
    std::vector<float> order(logits.begin(), logits.end());
    std::nth_element(order.begin(), order.begin() + (k - 1), order.end(), std::greater<>());
    const float smallest = order[k - 1];
    for (float& logit : logits)
        if (logit < smallest) logit = kNever;
}

void keep_typical(std::span<float> logits, double mass) {
    const double total = log_sum_exp(logits);
    std::vector<int32_t> order = possible_tokens(logits);
    double entropy = 0;
    for (const int32_t id : order) entropy -= std::exp(logits[id] - total) * (logits[id] - total);
    const auto distance = [&](int32_t id) { return std::abs(total - logits[id] - entropy); };
    std::sort(order.begin(), order.end(),
              [&](int32_t a, int32_t b) { return distance(a) < distance(b); });
    double reached = 0, furthest = 0;
    for (const int32_t id : order) {
        furthest = distance(id);
        reached += std::exp(logits[id] - total);
        if (reached >= mass) break;
    }
    for (const int32_t id : order)
        if (distance(id) > furthest) logits[id] = kNever;
}

void keep_top_p(std::span<float> logits, double p) {
    std::vector<int32_t> order = possible_tokens(logits);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
    const double total = log_sum_exp(logits);
    double reached = 0;
    for (size_t i = 0; i < order.size(); ++i) {
        const double probability = std::exp(logits[order[i]] - total);
        if (i > 0 && reached >= p) logits[order[i]] = kNever;
        reached += probability;
    }
}

void keep_min_p(std::span<float> logits, double min_p) {
    // p >= min_p * p_max, in logarithms.
    const float largest = *std::max_element(logits.begin(), logits.end());
    const double log_min_p = std::log(min_p);
    for (float& logit : logits)
        if (!passes_min_p(logit, largest, log_min_p)) logit = kNever;
}

void exclude_top_choices(std::span<float> logits, double threshold) {
    const double total = log_sum_exp(logits);
    std::vector<int32_t> top;
    for (const int32_t id : possible_tokens(logits))
        if (std::exp(logits[id] - total) >= threshold) top.push_back(id);
    if (top.size() < 2) return;
    const int32_t kept = *std::min_element(
        top.rbegin(), top.rend(), [&](int32_t a, int32_t b) { return logits[a] < logits[b]; });
    for (const int32_t id : top)
        if (id != kept) logits[id] = kNever;
}

void keep_surprise(std::span<float> logits, double most) {
    const double total = log_sum_exp(logits);
    const int32_t best = argmax(logits);
    for (size_t id = 0; id < logits.size(); ++id)
        if (static_cast<int32_t>(id) != best && (total - logits[id]) / M_LN2 > most)
            logits[id] = kNever;
}

}  // namespace hark::gpt
