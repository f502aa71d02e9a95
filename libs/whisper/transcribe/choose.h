// The choice of the next token on a GPU: the rules, then the likeliest tokens or a draw, without
// the logits leaving the device. The rules are those of rules.h: the host says what each row's
// tokens so far forbid, and the kernel applies it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/context.h"
#include "whisper/transcribe/logit_constraints.h"
#include "whisper/transcribe/search.h"

namespace hark::whisper {

// What one row of logits is asked for; the same bytes on both devices.
struct RowChoice {
    double u = 0;            // in [0, 1), where the temperature is above 0
    float temperature = 0;   // 0: the likeliest tokens
    int32_t first = 0;       // 1: at the first place, where blank is not allowed
    int32_t text_end = 0;    // ids of [0, text_end) are forbidden,
    int32_t stamp_end = 0;   // those of [timestamp_begin, stamp_end),
    int32_t stamp_last = 0;  // and those above
    int32_t only = -1;       // 0 or more: this token's own probability, whatever the rules
};

// What the tokens sampled so far leave to a row; n_vocab the number of logits.
RowChoice row_choice(const Rules& rules, std::span<const int32_t> sampled, int32_t n_vocab);

// The same for all rows, for the kernel.
struct ChooseRules {
    const uint8_t* forbidden = nullptr;  // (n_vocab): bit 0 always, bit 1 at the first place
    int32_t n_vocab = 0;
    int32_t timestamp_begin = 0;
    int32_t timestamps = 0;  // 1: where they together are likelier than any text, no text is chosen
};

// The GPU's side, in libhark-cuda.so.
struct CudaChoose {
    // best (n, k): of logits (n, n_vocab) f32 the k likeliest allowed tokens of each row, likeliest
    // first, the lowest id of equal ones; or one drawn. A token of -1 where none is left. Log
    // probabilities are among the allowed tokens, not divided by the temperature.
    void (*choose)(Context& ctx, Candidate* best, int64_t k, const float* logits,
                   const RowChoice* rows, int64_t n, const ChooseRules& rules);
};

class Chooser {
  public:
    Chooser(const Context& ctx, const Rules& rules, int64_t n_vocab);

    // As CudaChoose::choose; all pointers are the GPU's.
    void operator()(Context& ctx, Candidate* best, int64_t k, const Tensor& logits,
                    const RowChoice* rows) const;

  private:
    Arena memory_;
    ChooseRules rules_;
};

}  // namespace hark::whisper
