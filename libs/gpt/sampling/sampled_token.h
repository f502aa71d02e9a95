// A token that was chosen, and its probability.
#pragma once

#include <cstdint>
#include <vector>

namespace hark::gpt {

struct TokenLogprob {
    int32_t token = 0;
    double logprob = 0;
};

struct SampledToken {
    int32_t token = 0;
    double logprob = 0;                   // natural, under the model, before any filter
    std::vector<TokenLogprob> likeliest;  // as many as were asked for
};

}  // namespace hark::gpt
