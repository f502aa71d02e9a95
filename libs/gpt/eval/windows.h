// A long text as windows of the model's context, each token scored once.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gpt/engine/packed_rows.h"

namespace hark::gpt {

// Adds a text's tokens in windows of up to `positions` rows, a sequence each. The first window
// begins with `prefix`, which is not scored. Windows do not overlap, except that the last one
// reaches back over tokens that were scored before, so that its own have as much context as fits.
// Source: lm-eval's loglikelihood_rolling (lm_eval/utils.py, get_rolling_token_windows).
void add_windows(PackedRows& rows, std::span<const int32_t> ids, int32_t prefix, int64_t positions);

// Words as lm-eval's word_perplexity counts them: one more than the runs of white space.
int64_t count_words(std::string_view text);

}  // namespace hark::gpt
