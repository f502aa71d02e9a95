// One of the engine's sequences: its tokens, and how far they have been computed.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "gpt/sampling/sampler.h"

namespace hark::gpt {

// A text that is asked of the engine.
struct TextRequest {
    std::vector<int32_t> prompt;  // not empty
    SamplerOptions sampler;
    uint64_t seed = 0;       // the token at place p is drawn with uniform_at(seed, p)
    int64_t max_tokens = 1;  // of the answer, at most; at least 1
    int64_t likeliest = 0;   // tokens whose log probabilities are wanted at each place
};

struct BatchSequence {
    BatchSequence(uint64_t id, TextRequest request)
        : id(id),
          request(std::move(request)),
          sampler(this->request.sampler),
          on_host(this->request.likeliest > 0 || !this->request.sampler.fits_gpu()) {
        sampler.begin(this->request.prompt, this->request.seed);
    }

    uint64_t id;
    TextRequest request;
    Sampler sampler;         // has the prompt and the tokens that the host knows
    bool on_host;            // its tokens are chosen by the host, whatever the device
    int64_t computed = 0;    // tokens whose keys are in the cache, or are being computed
    int64_t in_flight = 0;   // sampled tokens that the host does not know yet
    int64_t slot = kNoSlot;  // number in the cache
    uint64_t last_pass = 0;  // number of the last pass that it was part of
    int64_t cached = 0;      // tokens of the prompt that were in the cache at the first admission
    bool has_begun = false;  // it has been admitted before
    std::chrono::steady_clock::time_point begun;  // when it was admitted first
    bool has_ended = false;  // its samples in flight are not wanted
    bool guesses = true;     // false: the draft model had no memory for it
    int64_t drafted = 0, accepted = 0;  // guesses that were checked so far; those that were right
    std::vector<int32_t> drafts;  // guesses of the next tokens, which a pass in flight checks

    static constexpr int64_t kNoSlot = -1;

    const std::vector<int32_t>& tokens() const { return sampler.tokens(); }
    bool is_constrained() const { return request.sampler.constraint != nullptr; }
    int64_t prompt() const { return std::ssize(request.prompt); }
    int64_t length() const { return std::ssize(tokens()) + in_flight; }
    int64_t left() const { return length() - computed; }
    // Whether the last token of the answer has been sampled.
    bool is_complete() const { return length() - prompt() >= request.max_tokens; }
    // Whether tokens are left whose logits or keys are needed: not those of the answer's last one.
    // A token that the host chooses, or that follows drafts, is an input only when it is there.
    bool has_rows() const {
        const bool waits = in_flight > 0 && (on_host || !drafts.empty());
        return left() > 0 && !is_complete() && !waits;
    }
};

// The tokens [begin, end) of a sequence and its drafts, as rows of a pass. The logits of the last
// `samples` rows give tokens: the next one, and one after each draft.
struct PassPiece {
    BatchSequence* sequence = nullptr;
    int64_t begin = 0, end = 0;
    int64_t samples = 0;

    int64_t rows() const { return end - begin; }
};

}  // namespace hark::gpt
