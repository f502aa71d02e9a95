// Sampling of the next token on a GPU with sampler.h's filters and draw. Neither the logits nor the
// token must reach the host before the next step.
#pragma once

#include <cstdint>
#include <span>

#include "core/context.h"
#include "kernels/sampling/sampling_params.h"

namespace hark {

// State of the next step, on the GPU at a fixed address.
struct DecodeState {
    int32_t token = 0;     // input of the step,
    int32_t position = 0;  // its position,
    int32_t length = 0;    // and the number of keys, its own included
    int32_t draw = 0;      // index of the next uniform number
    uint32_t serial = 1;   // of the next choice; never 0
};

// A choice in flight to the host. Each word is written at once, in any order, and has the choice's
// serial number in its upper half.
struct TokenRingEntry {
    uint64_t token = 0;
    uint64_t logprob = 0;  // the bits of an f32: natural, under the model itself
    uint64_t kept = 0;     // number of tokens that it was drawn from
};

// Arguments of one choice; all pointers are the GPU's, except the ring.
struct SamplerArgs {
    const float* logits = nullptr;    // (n)
    const double* uniform = nullptr;  // in [0, 1), by DecodeState::draw; none at temperature 0
    uint8_t* seen = nullptr;          // (n): 1 for a token of the prompt or the text; or none
    DecodeState* state = nullptr;     // in: the step of these logits; out: the next one
    TokenRingEntry* ring = nullptr;   // pinned memory of the host, (ring_size), by serial number
    void* scratch = nullptr;          // sample_scratch(n) bytes
    int32_t n = 0;
    int32_t ring_size = 0;
    int32_t group_size = 0;  // set by sample(): sample_group(n)
    SamplingParams params;
    int32_t* latest = nullptr;       // gets the token too; or none
    const uint64_t* mask = nullptr;  // (mask_words(n)): bit t % 64 of word t / 64 is set if token
                                     // t may be chosen; or none: any token
};

// What a row of a batch adds to its choice.
struct SampleRow {
    SamplingParams params;
    double u = 0;       // in [0, 1)
    DecodeState state;  // its serial counts; draw is 0
    int32_t slot = -1;  // its sequence's; below 0: nothing is chosen
    int32_t entry = 0;  // of the ring
    int32_t mask = -1;  // row of SampleRows::masks; below 0: any token
};

// Arguments of a choice per row. A row whose penalty is 1 has no history.
struct SampleRows {
    const float* logits = nullptr;  // (rows, stride)
    int64_t stride = 0;
    SampleRow* rows = nullptr;  // on the GPU
    int32_t* latest = nullptr;  // (slots): each sequence's last token
    uint8_t* seen = nullptr;    // (slots, n)
    TokenRingEntry* ring = nullptr;  // pinned memory of the host, by SampleRow::entry
    void* scratch = nullptr;    // sample_scratch(n) bytes per row
    const uint64_t* masks = nullptr;  // (any, mask_words(n)), or none if no row has one
    int32_t n = 0;
    int32_t group_size = 0;     // set by sample_rows(): sample_group(n),
    int64_t scratch_bytes = 0;  // sample_scratch(n)
    int64_t mask_size = 0;      // and mask_words(n)
};

// Tokens are searched in at most 1024 groups of a multiple of 64. Each group has a part in the
// scratch, each token its logit after penalty and temperature.
inline constexpr int64_t kMostGpuTokens = 1 << 24, kSampleGroups = 1024;
inline constexpr int64_t kSampleParts = 16 * kSampleGroups;
constexpr int64_t sample_group(int64_t n) {
    constexpr int64_t kGroup = 64;
    return kGroup * ((n + kGroup * kSampleGroups - 1) / (kGroup * kSampleGroups));
}
constexpr int64_t sample_scratch(int64_t n) { return kSampleParts + 4 * n; }
constexpr int64_t mask_words(int64_t n) { return (n + 63) / 64; }

// The GPU's side, in libhark-cuda.so. It chooses the token of sample(): of equal logits the lowest
// id is first. Sums are of integers, weights in units of 2^-31 of the largest, so the same logits
// always give the same token. -1 if all logits are NaN, or if none that the mask allows is above
// -infinity.
struct CudaSampler {
    void (*sample)(Context& ctx, SamplerArgs call);
    // The same for each of `count` rows.
    void (*sample_rows)(Context& ctx, SampleRows rows, int64_t count);
    // tokens (n) = from, or where that is below 0 the last token of sequence -1 - from.
    void (*take_tokens)(Context& ctx, int32_t* tokens, const int32_t* from, const int32_t* latest,
                        int64_t n);
};

const CudaSampler& cuda_sampler();

}  // namespace hark
