#include "gpt/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "kernels/sampling/distribution.h"

namespace hark::gpt {

bool SamplerOptions::fits_gpu() const {
    return presence_penalty == 0 && frequency_penalty == 0 && typical_p == 1 &&
           xtc_probability == 0 && mirostat == 0 && dry.multiplier == 0 && logit_bias.empty();
}

void process_logits(std::span<float> logits, const TextSoFar& text, const SamplerOptions& options) {
    add_logit_bias(logits, options.logit_bias);
    if (options.repetition_penalty != 1)
        penalize_repetition(logits, text.tokens, options.repetition_penalty);
    if (options.presence_penalty != 0 || options.frequency_penalty != 0)
        penalize_counts(logits, text.tokens.subspan(text.prompt), options.presence_penalty,
                        options.frequency_penalty);
    if (options.dry.multiplier > 0) penalize_loops(logits, text.tokens, options.dry);
    if (options.temperature == 0) return;
    if (options.temperature != 1) apply_temperature(logits, options.temperature);
    if (options.mirostat != 0) return;
    if (options.top_k > 0) keep_top_k(logits, options.top_k);
    if (options.typical_p < 1) keep_typical(logits, options.typical_p);
    if (options.top_p < 1) keep_top_p(logits, options.top_p);
    if (options.min_p > 0) keep_min_p(logits, options.min_p);
}

double log_probability(std::span<const float> logits, int32_t token) {
    return logits[token] - log_sum_exp(logits);
}

std::vector<TokenLogprob> likeliest_tokens(std::span<const float> logits, int64_t n) {
    std::vector<int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    const auto end = order.begin() + std::min<int64_t>(n, std::ssize(order));
    std::partial_sort(order.begin(), end, order.end(), [&](int32_t a, int32_t b) {
        return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
    });
    const double total = log_sum_exp(logits);
    std::vector<TokenLogprob> likeliest;
    for (auto id = order.begin(); id != end; ++id) likeliest.push_back({*id, logits[*id] - total});
    return likeliest;
}

void Sampler::begin(std::span<const int32_t> prompt, uint64_t seed) {
    tokens_.assign(prompt.begin(), prompt.end());
    prompt_ = prompt.size();
    seed_ = seed;
    surprise_ = 2 * options_.mirostat_tau;
    if (options_.constraint) constrained_ = options_.constraint->start();
}

int32_t Sampler::operator()(std::span<float> logits) {
    require(std::none_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }),
            "the model's logits are NaN");
    const std::shared_ptr<const TokenMask> mask = allowed();
    if (mask) keep_allowed(logits, *mask);
    process_logits(logits, {tokens_, prompt_}, options_);
    const int32_t token = options_.temperature == 0 ? argmax(logits) : choose(logits);
    // Not so if the model excludes all of them.
    require(!mask || allows(*mask, token), kNoTokenAllowed);
    append(token);
    return token;
}

std::shared_ptr<const TokenMask> Sampler::allowed() const {
    if (!options_.constraint) return nullptr;
    return options_.constraint->mask(constrained_, tokens_.size() == prompt_);
}

void Sampler::append(int32_t token) {
    if (TokenMasks* const constraint = options_.constraint.get()) {
        constrained_ = constraint->next(constrained_, token);
        require(constrained_ != GrammarStates::kDead, "the answer is nested deeper than ",
                GrammarStates::kMostOpenCalls, " levels");
        constraint->prepare(constrained_);
    }
    tokens_.push_back(token);
}

int32_t Sampler::choose(std::span<float> logits) {
    const uint64_t position = tokens_.size();
    const double u = uniform_at(seed_, position);
    if (options_.mirostat != 0) {
        keep_surprise(logits, surprise_);
        const int32_t token = draw(logits, 1, u);
        const double surprise = -log_probability(logits, token) / M_LN2;
        surprise_ -= options_.mirostat_eta * (surprise - options_.mirostat_tau);
        return token;
    }
    // Whether to exclude is another draw: a second sequence of numbers of the same seed.
    if (options_.xtc_probability > 0 && options_.xtc_threshold <= 0.5 &&
        uniform_at(split_mix(seed_, 0), position) < options_.xtc_probability)
        exclude_top_choices(logits, options_.xtc_threshold);
    return draw(logits, 1, u);
}

}  // namespace hark::gpt
