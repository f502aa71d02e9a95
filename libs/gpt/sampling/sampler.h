// Choosing the next token: filters on logits, then a draw.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpt/sampling/logit_filters.h"
#include "gpt/sampling/sampled_token.h"

namespace hark::gpt {

struct SamplerOptions {
    double temperature = 0.8;  // 0: the likeliest token
    int64_t top_k = 40;        // 0: all
    double top_p = 0.95;       // 1: all
    double min_p = 0;          // 0: all
    double repetition_penalty = 1;
    double presence_penalty = 0, frequency_penalty = 0;
    double typical_p = 1;                             // 1: all
    double xtc_probability = 0, xtc_threshold = 0.1;  // above 0.5: nothing is excluded
    int64_t mirostat = 0;                             // 0 or 2, the algorithm
    double mirostat_tau = 5, mirostat_eta = 0.1;
    DryOptions dry;
    LogitBias logit_bias;
    std::shared_ptr<TokenMasks> constraint;  // what the answer must be; nullptr: anything

    bool operator==(const SamplerOptions&) const = default;
    // Whether the filters, without the constraint, are those that a GPU has.
    bool fits_gpu() const;
};

// The tokens of a sequence; the first `prompt` ones were given.
struct TextSoFar {
    std::span<const int32_t> tokens;
    size_t prompt = 0;
};

// Applies the options' filters, except the constraint, in this order: bias, penalties of
// repetition, presence and frequency, DRY, temperature, top-k, typical, top-p, min-p. Filters
// without effect are skipped; temperature 0 skips those after DRY, mirostat those after the
// temperature.
void process_logits(std::span<float> logits, const TextSoFar& text, const SamplerOptions& options);

// The natural logarithm of the token's probability under softmax(logits).
double log_probability(std::span<const float> logits, int32_t token);

// The n likeliest tokens, the first one first; of equal ones that with the lower id.
std::vector<TokenLogprob> likeliest_tokens(std::span<const float> logits, int64_t n);

inline constexpr const char* kNoTokenAllowed =
    "the model gives no token of the constraint a probability";

// The choices of one text after another, on the host.
class Sampler {
  public:
    explicit Sampler(SamplerOptions options) : options_(std::move(options)) {}

    // The token at place p of the sequence is drawn with uniform_at(seed, p), inverted over the ids
    // in ascending order.
    void begin(std::span<const int32_t> prompt, uint64_t seed);
    // Chooses and appends the next token: of those that the constraint allows, if there is one.
    // Filters the logits in place. Throws Error if one is NaN, or if no token is allowed.
    int32_t operator()(std::span<float> logits);
    // Appends a token that was chosen elsewhere, of those that the constraint allows. Throws Error
    // where the constraint has no state after it.
    void append(int32_t token);
    // What the next token may be; nullptr: any.
    std::shared_ptr<const TokenMask> allowed() const;
    // The prompt, and what was chosen.
    const std::vector<int32_t>& tokens() const { return tokens_; }

  private:
    int32_t choose(std::span<float> logits);

    SamplerOptions options_;
    std::vector<int32_t> tokens_;
    size_t prompt_ = 0;
    uint64_t seed_ = 0;
    TokenMasks::State constrained_ = 0;  // the constraint's state
    double surprise_ = 0;                // mirostat's mu: the most that a token may have
};

}  // namespace hark::gpt
