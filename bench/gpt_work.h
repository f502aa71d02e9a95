// What the measurements of GPT-2 on both devices share.
#pragma once

#include <string>
#include <vector>

#include "gpt/engine/decode_stream.h"

namespace hark::bench {

inline constexpr int64_t kGptPrompt = 16;  // tokens ahead of those that are timed

struct GptWork {
    std::string size, dtype;
    int64_t tokens = 0;  // that are timed
};

// Greedy, and the draws of gpt-generate without flags.
struct NamedSampler {
    const char* name;
    gpt::SamplerOptions options;
};
std::vector<NamedSampler> gpt_samplers();

// A model of an official size with random weights.
gpt::Model random_gpt(const std::string& size, Precision precision, const MemorySource& memory);

// What a step reads on the average: all weights but the positions, and the keys and values.
double gpt_token_bytes(const gpt::Model& model, int64_t tokens);

// The prompt, and milliseconds a token of those behind the first.
std::vector<int32_t> gpt_prompt();
double gpt_token_ms(gpt::DecodeStream& stream, int64_t tokens, int runs);

// Prints the rows of `bench gpt --device cuda`.
void gpt_on_gpu(const GptWork& work);

}  // namespace hark::bench
