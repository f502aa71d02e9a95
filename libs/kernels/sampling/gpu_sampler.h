// The choice of the next token on a GPU: sampler.h's filters and its draw, without the logits or
// the token having to come to the host before the next step.
#pragma once

#include <cstdint>
#include <span>

#include "core/context.h"
#include "kernels/sampling/filters.h"

namespace hark::gpt {

// What the next step reads, and what its choice is counted by; on the GPU, in a place that does not
// move.
struct StepState {
    int32_t token = 0;     // that the step reads,
    int32_t position = 0;  // its position,
    int32_t length = 0;    // and the keys there are with its own
    int32_t draw = 0;      // which of the uniform numbers is the next one
    uint32_t serial = 1;   // of the next choice; never 0
};

// A choice on its way to the host. Words are written at once, in any order: each has the choice's
// serial number in its upper half.
struct RingEntry {
    uint64_t token = 0;
    uint64_t logprob = 0;  // the bits of an f32: natural, under the model itself
    uint64_t kept = 0;     // how many tokens it was drawn from
};

// What one choice reads and writes; all pointers are the GPU's, but for the ring.
struct SampleCall {
    const float* logits = nullptr;    // (n)
    const double* uniform = nullptr;  // in [0, 1), by StepState::draw; none at temperature 0
    uint8_t* seen = nullptr;          // (n): 1 for a token of the prompt or the text; or none
    StepState* state = nullptr;       // in: the step whose logits these are; out: the next one
    RingEntry* ring = nullptr;        // pinned memory of the host, (ring_size), by serial number
    void* scratch = nullptr;          // sample_scratch(n) bytes
    int32_t n = 0;
    int32_t ring_size = 0;
    Filters filters;
};

// So many tokens at most; groups of them have a part each in the scratch, and each its logit
// behind penalty and temperature.
inline constexpr int64_t kMostGpuTokens = 65535, kSampleGroup = 64;
inline constexpr int64_t kSampleParts = 16 * (kMostGpuTokens / kSampleGroup + 1);
constexpr int64_t sample_scratch(int64_t n) { return kSampleParts + 4 * n; }

// The GPU's side, in libhark-cuda.so. The token is that of sample(): of equal logits the lowest id
// comes first; sums are of whole numbers, weights in units of 2^-31 of the largest, so that the
// same logits always give the same token. -1 where no logit is a number.
struct CudaSampler {
    void (*sample)(Context& ctx, const SampleCall& call);
};

const CudaSampler& cuda_sampler();

}  // namespace hark::gpt
