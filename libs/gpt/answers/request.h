// What is asked of a text's generation: the flags for all texts, and a line's own fields.
#pragma once

#include "gpt/answers/constraint_settings.h"
#include "gpt/answers/generate_request.h"
#include "gpt/sampling/sampler_settings.h"

namespace hark::gpt {

// The most tokens whose log probabilities are written at each place, and answers per prompt.
inline constexpr int64_t kMostLogprobs = 20, kMostSamples = 1024;

// The flags of a run.
class GenerateSettings {
  public:
    void flags(Flags& flags);
    void check() const;  // throws UsageError

    // Each option from its flag, else from the model, else its default. Throws Error if a model's
    // value is out of range.
    GenerateOptions options(const SamplingDefaults& model) const;
    bool wants_logprobs() const { return options_.logprobs.has_value(); }
    int64_t samples() const { return options_.samples; }
    const std::string& prompt_cache() const { return options_.prompt_cache; }

  private:
    GenerateOptions options_;  // without the sampler's
    SamplerSettings sampler_;
    ConstraintSettings constraint_;
};

// The fields of a JSON line, under OpenAI's names; the same type and range as the flags'.
class LineSettings {
  public:
    // Returns what is wrong; empty: nothing.
    std::string read(const nlohmann::ordered_json& line);
    // The options of prompt `index` of a run: the line's, else the run's. The run's seed + index,
    // or the line's own seed.
    GenerateOptions over(GenerateOptions options, uint64_t index) const;

  private:
    SamplerSettings sampler_;
    std::optional<int64_t> max_tokens_, seed_, samples_, logprobs_;
    std::optional<bool> wants_logprobs_, ignore_eos_;
    std::optional<std::vector<std::string>> stop_;
    std::optional<ConstraintRequest> constraint_;
};

}  // namespace hark::gpt
