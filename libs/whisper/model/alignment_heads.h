// Which heads of a decoder's cross-attention follow the words through the recording.
#pragma once

#include <string>

#include "whisper/model/config.h"

namespace hark::whisper {

// The heads that the authors chose for the official model of this shape; where there is none, all
// heads of the upper half of the layers. large-v1 and large-v2 have one shape: v2's are taken, v1
// has its own in generation_config.json. Sorted by layer, then head.
// Source: openai/whisper __init__.py, _ALIGNMENT_HEADS, and model.py, Whisper.__init__.
std::vector<AlignmentHead> default_alignment_heads(const Config& config);

// `alignment_heads` of generation_config.json's text, else the default. Throws Error that begins
// with `where`: not pairs of a layer and a head, or none that the model has.
std::vector<AlignmentHead> parse_alignment_heads(const std::string& generation_json,
                                                 const Config& config, const std::string& where);

}  // namespace hark::whisper
