// What a piece of a vocabulary is. Source: sentencepiece_model.proto, SentencePiece.Type; GGUF's
// tokenizer.ggml.token_type has the same numbers.
#pragma once

#include <cstdint>

namespace hark {

enum PieceType : int32_t {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUserDefined = 4,
    kUnused = 5,
    kByte = 6
};

}  // namespace hark
