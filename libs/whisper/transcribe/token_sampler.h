// Samples the next token on a GPU: constraints, then the likeliest tokens or a draw. The host turns
// each row's tokens into a TimestampMask (logit_constraints.h); the kernel applies it. Logits stay
// on the device.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/context.h"
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
};

// The kernel's entry point, in libhark-cuda.so.
struct CudaTokenSampler {
    // best (n, k): the k likeliest allowed tokens of each row of logits (n, n_vocab) f32, likeliest
    // first, equal ones by id; above temperature 0 the first is drawn. Missing tokens are -1. Log
    // probabilities are over the allowed tokens, at temperature 1.
    void (*sample)(Context& ctx, Candidate* best, int64_t k, const float* logits,
                   const SampleRequest* requests, int64_t n, const SamplerConstraints& constraints);
};

class TokenSampler {
  public:
    TokenSampler(const Context& ctx, const LogitConstraints& constraints, int64_t n_vocab);

    // CudaTokenSampler::sample; all pointers are the GPU's.
    void operator()(Context& ctx, Candidate* best, int64_t k, const Tensor& logits,
                    const SampleRequest* requests) const;

  private:
    Arena memory_;
    SamplerConstraints constraints_;
};

}  // namespace hark::whisper
