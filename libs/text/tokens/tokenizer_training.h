// Trains a tokenizer on documents and writes its files.
#pragma once

#include <string>
#include <vector>

#include "core/cli/cli.h"
#include "text/tokens/bpe_trainer.h"
#include "text/tokens/documents.h"

namespace hark {

struct TrainingOptions {
    bool on = false;
    int64_t vocab_size = 0;
    std::string kind = "bytes";

    void flags(Flags& flags);
    // Throws UsageError if the options contradict each other.
    void check() const;
};

// Reads all of `paths` and writes into `directory`, which is made if it does not exist: for the
// kind `bytes` tokenizer.json, vocab.json, merges.txt and tokenizer_config.json, as transformers
// read them; for the kinds of sentencepiece tokenizer.model. Throws Error if there is no text, or
// too little for the vocabulary, and nothing is written.
void train_tokenizer(const TrainingOptions& options, const DocumentOptions& documents,
                     const std::vector<std::string>& paths, const std::string& directory,
                     Console& console);

// The files of a byte-level vocabulary; <|endoftext|> is the last id.
void write_hugging_face(const BpeVocabulary& vocabulary, const std::string& directory);

}  // namespace hark
