// A sequence that goes on by itself: from a prompt, one chosen token after another.
#pragma once

#include <memory>
#include <span>

#include "gpt/engine/sampler.h"
#include "gpt/engine/session.h"

namespace hark::gpt {

struct Choice {
    int32_t token = 0;
    double logprob = 0;  // natural, under the model itself, before any filter
};

class Steps {
  public:
    virtual ~Steps() = default;
    // Forgets what was, reads the prompt, and will choose `most` tokens at most: 1 or more, and no
    // more than the model's context has places for, counted with the one behind its end. The i-th
    // is drawn by the i-th number of `random`.
    virtual void begin(std::span<const int32_t> prompt, const Random& random, int64_t most) = 0;
    // The next token, at most `most` times. Whether and when it is asked for makes no difference
    // to the tokens.
    virtual Choice next() = 0;
};

// On a GPU tokens are chosen there and fed back without waiting for the host; on the CPU, and for
// vocabularies too large for the GPU's sampler, each is chosen by the host when it is asked for.
// Tokens are of [0, vocabulary): what the model's table has more is padding. Holds references.
std::unique_ptr<Steps> make_steps(Context& ctx, const Model& model, int64_t vocabulary,
                                  const SamplerOptions& options);

// The host's way, for every device.
std::unique_ptr<Steps> make_host_steps(Context& ctx, const Model& model, int64_t vocabulary,
                                       const SamplerOptions& options);

}  // namespace hark::gpt
