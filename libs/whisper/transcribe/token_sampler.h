// Samples the next token on a GPU: constraints, then the likeliest tokens or a draw. The host turns
// each row's tokens into a TimestampMask (logit_constraints.h); the kernel applies it. Logits stay
// on the device.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/context.h"
#include "core/host_device.h"
#include "whisper/transcribe/logit_constraints.h"
#include "whisper/transcribe/search.h"

namespace hark::whisper {

// How to sample from one row of logits. Both devices have the same layout.
struct SampleRequest {
    double u = 0;                // uniform in [0, 1); used above temperature 0
    float temperature = 0;       // 0: the likeliest tokens
    int32_t first = 0;           // 1: the first sampled token, which may not be blank
    int32_t text_end = 0;        // masked ids: [0, text_end),
    int32_t timestamp_end = 0;   // [timestamp_begin, timestamp_end),
    int32_t timestamp_last = 0;  // and those above timestamp_last
    int32_t only = -1;           // 0 or more: the probability of this token, unconstrained

    bool operator==(const SampleRequest&) const = default;
};

// The request of a row with these sampled tokens; n_vocab is the number of logits.
SampleRequest sample_request(const LogitConstraints& constraints, std::span<const int32_t> sampled,
                             int32_t n_vocab);

// The constraints that all rows share, for the kernel.
struct SamplerConstraints {
    const uint8_t* masked = nullptr;  // (n_vocab): bit 0 always, bit 1 for the first token
    int32_t n_vocab = 0;
    int32_t timestamp_begin = 0;
    int32_t timestamps = 0;  // 1: no text if P(any timestamp) > P of each text token
    int32_t eot = 0;
};

// The greedy request after `sampled`: `request` was the one for it, `last` the sampled token before
// it. The same as sample_request() of all of them.
HARK_HOST_DEVICE SampleRequest next_request(const SamplerConstraints& constraints,
                                            const SampleRequest& request, int32_t last,
                                            int32_t sampled) {
    SampleRequest next;
    next.timestamp_end = constraints.timestamp_begin;
    next.timestamp_last = constraints.n_vocab - 1;
    if (!constraints.timestamps) return next;
    const bool opens = last >= constraints.timestamp_begin;
    if (sampled < constraints.timestamp_begin) {
        next.timestamp_end = opens ? last + 1 : request.timestamp_end;
    } else if (opens) {  // text follows a pair
        next.timestamp_end = constraints.n_vocab;
    } else {
        next.timestamp_end = sampled;
        next.text_end = constraints.eot;
    }
    return next;
}

// What a step of one row reads and a later one reads too: the kernel makes the next step's values
// of it. Pointers are the GPU's.
struct NextStep {
    int32_t *token = nullptr, *position = nullptr, *length = nullptr;
    int32_t* turn = nullptr;  // 0 or 1: the half of `best` that the step writes
    SampleRequest* request = nullptr;
};

// The kernel's entry point, in libhark-cuda.so.
struct CudaTokenSampler {
    // best (n, k): the k likeliest allowed tokens of each row of logits (n, n_vocab) f32, likeliest
    // first, equal ones by id; above temperature 0 the first is drawn. Missing tokens are -1. Log
    // probabilities are over the allowed tokens, at temperature 1. With `next`, n is 1, and best is
    // (2, k).
    void (*sample)(Context& ctx, Candidate* best, int64_t k, const float* logits,
                   const SampleRequest* requests, int64_t n, const SamplerConstraints& constraints,
                   const NextStep& next);
};

class TokenSampler {
  public:
    TokenSampler(const Context& ctx, const LogitConstraints& constraints, int64_t n_vocab);

    // CudaTokenSampler::sample; all pointers are the GPU's.
    void operator()(Context& ctx, Candidate* best, int64_t k, const Tensor& logits,
                    const SampleRequest* requests, const NextStep& next = {}) const;
    const SamplerConstraints& constraints() const { return constraints_; }

  private:
    Arena memory_;
    SamplerConstraints constraints_;
};

}  // namespace hark::whisper
