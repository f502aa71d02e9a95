// What is asked of a text's generation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpt/answers/constraint.h"
#include "gpt/sampling/sampler.h"

namespace hark {
struct Precision;
}

namespace hark::gpt {

struct GenerateOptions {
    SamplerOptions sampler;
    int64_t max_tokens = 0;  // 0: 200, or fewer where the context ends
    int64_t seed = 0;
    int64_t samples = 1;            // answers per prompt
    std::vector<std::string> stop;  // strings that end the text and are not part of it
    bool ignore_eos = false;
    std::optional<int64_t> logprobs;  // tokens whose log probabilities are wanted at each place
    int64_t context = 0;              // tokens of prompt and answer; 0: the model's own
    std::string kv_dtype = "auto";    // of keys and values; auto: by --dtype
    std::string prompt_cache;         // file of a prompt's keys and values; empty: none
    ConstraintRequest constraint;     // what the answers must be
    std::vector<int32_t> shown;       // special tokens that are in the text; the others are not

    // The same with the cache's type.
    Precision with_cache(Precision precision) const;
};

// The seed of a prompt's sample: its own for the first one.
uint64_t sample_seed(uint64_t seed, int64_t sample);

}  // namespace hark::gpt
