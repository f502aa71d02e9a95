// Row: the fixed state of one sequence being decoded, laid out flat for a GPU and for beams.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "whisper/model/config.h"

namespace hark::whisper {

struct Row {
    // The prompt's tokens, then those sampled; one more than the context, as in the reference,
    // whose last sampled token is never decoded.
    std::array<int32_t, kMaxTextContext + 1> tokens{};
    int32_t length = 0;
    int32_t sample_begin = 0;  // where the sampled tokens begin
    int32_t sot_index = 0;     // where <|startoftranscript|> stands
    int32_t window = 0;        // slot of the encoder's output it listens to
    int32_t parent = 0;        // the row whose cache it goes on from
    double sum_logprob = 0;    // of the sampled tokens, eot included
    float no_speech_prob = 0;
    bool finished = false;  // eot has come, or no place is left

    std::span<const int32_t> sampled() const {
        return {tokens.data() + sample_begin, static_cast<size_t>(length - sample_begin)};
    }
};

}  // namespace hark::whisper
