// Sentencepiece models, by the sentencepiece library.
// Source: Kudo and Richardson 2018, "SentencePiece".
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "text/tokens/tokenizer.h"

namespace hark {

// A tokenizer from a model file's bytes. A text is encoded whole: its end may change
// the ids at its beginning. Invalid UTF-8 is seen as U+FFFD. Throws Error beginning with `where`
// where the bytes are no such model.
std::unique_ptr<Tokenizer> load_sentencepiece(std::string_view model, const std::string& where);

struct SentencepieceTraining {
    std::string kind = "unigram";  // or "bpe"
    int32_t vocab_size = 0;        // with <unk>, <s>, </s> and the 256 bytes
};

// The bytes of a model of the sentences that `next` gives until there are no more. Text comes back
// as it was: nothing is normalised, and what no piece covers is spelt in bytes. Throws Error where
// the library refuses: too little text for the vocabulary, or too small a vocabulary.
std::string train_sentencepiece(const SentencepieceTraining& training,
                                const std::function<std::optional<std::string>()>& next);

}  // namespace hark
