// Row: the state of one sequence being decoded, of fixed size so that beams can copy it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "whisper/model/config.h"

namespace hark::whisper {

struct Row {
    // The prompt's tokens, then the sampled ones. One more than the context, as in the reference:
    // the last sampled token is never fed to the decoder.
    std::array<int32_t, kMaxTextContext + 1> tokens{};
    int32_t length = 0;
    int32_t sample_begin = 0;  // index of the first sampled token
    int32_t sot_index = 0;     // index of <|startoftranscript|>
    int32_t window = 0;        // slot of its encoder output
    int32_t parent = 0;        // the row whose cache it continues
    double sum_logprob = 0;    // of the sampled tokens, eot included
    float no_speech_prob = 0;
    bool finished = false;  // eot was sampled, or the row is full

    std::span<const int32_t> sampled() const {
        return {tokens.data() + sample_begin, static_cast<size_t>(length - sample_begin)};
    }
};

}  // namespace hark::whisper
