// Training of sentencepiece models, by the sentencepiece library. Tokenizer reads them.
// Source: Kudo and Richardson 2018, "SentencePiece".
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace hark {

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
