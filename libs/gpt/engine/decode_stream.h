// Generates a sequence: from a prompt, one sampled token after another.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpt/sampling/sampled_token.h"
#include "gpt/sampling/sampler.h"

namespace hark {
struct Context;
}

namespace hark::gpt {

struct Model;
class Sequence;

// Samples the next token of a text from its logits (V), on the host; `filtered` is scratch. Throws
// Error if one is NaN.
SampledToken sample_token(Sampler& sampler, std::span<const float> logits, int64_t likeliest,
                          std::vector<float>& filtered);

class DecodeStream {
  public:
    virtual ~DecodeStream() = default;
    // Starts a new sequence with the prompt. max_tokens is at least 1, at most the free positions +
    // 1. The token at place p of the sequence is drawn with uniform_at(seed, p). With `reuse` the
    // tokens that sequence() begins with too need not be computed again; logits may then differ in
    // their last bits. Returns how many were not.
    virtual int64_t begin(std::span<const int32_t> prompt, uint64_t seed, int64_t max_tokens,
                          bool reuse = false) = 0;
    // The same with the prompt that sequence() has, from the logits (n_vocab), on the host, that
    // follow it. Bits are those of begin() where it computed these logits.
    virtual void go_on(std::span<const float> logits, uint64_t seed, int64_t max_tokens) = 0;
    // The next token; at most max_tokens calls. The tokens do not depend on when it is called.
    virtual SampledToken next() = 0;
    // The last prompt, and on the CPU its answer, with their keys and values.
    virtual Sequence& sequence() = 0;
};

// The GPU samples its tokens itself. The host samples in next() on the CPU, for a model with
// longrope, with filters that only the host has (SamplerOptions::fits_gpu) or a constraint, or if
// the `likeliest` tokens are wanted too. Tokens are below `vocabulary`: further rows of the model's
// table are padding. `context`: tokens of a sequence, at most; 0: the model's own. Holds
// references.
std::unique_ptr<DecodeStream> make_decode_stream(Context& ctx, const Model& model,
                                                 int64_t vocabulary, const SamplerOptions& options,
                                                 int64_t context = 0, int64_t likeliest = 0);

// Sampled by the host, for a model on any device.
std::unique_ptr<DecodeStream> make_host_decode_stream(Context& ctx, const Model& model,
                                                      int64_t vocabulary,
                                                      const SamplerOptions& options,
                                                      int64_t context = 0, int64_t likeliest = 0);

}  // namespace hark::gpt
