// The cross-attention heads that follow the words through the recording.
#pragma once

#include <string>

#include "whisper/model/config.h"

namespace hark::whisper {

// The authors' heads for the official model of this shape, sorted by layer, then head; for other
// shapes all heads of the upper half of the layers. large-v1's shape gets large-v2's heads.
// Source: openai/whisper __init__.py, _ALIGNMENT_HEADS, and model.py, Whisper.__init__.
std::vector<AlignmentHead> default_alignment_heads(const Config& config);

// `alignment_heads` from generation_config.json's text, else the default. Throws Error that begins
// with `where` unless they are pairs of a layer and a head of the model.
std::vector<AlignmentHead> parse_alignment_heads(const std::string& generation_json,
                                                 const Config& config, const std::string& where);

}  // namespace hark::whisper
