// The command line of gpt-tokenize.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "text/tokens/documents.h"
#include "text/tokens/encode_blocks.h"
#include "text/tokens/token_output.h"
#include "text/tokens/tokenizer_training.h"

namespace hark {

struct TokenizeOptions {
    std::string model, tokenizer;
    std::vector<std::string> files;
    bool decode = false, eot = true;
    int64_t threads = 0;  // 0: all cores
    DocumentOptions documents;
    TokenOutputOptions output;
    TrainingOptions training;

    void flags(Flags& flags);
    void check() const;  // throws UsageError
    int thread_count() const;
    // --tokenizer, or the path of --model. Throws Error if there is no such model.
    std::filesystem::path tokenizer_path() const;
    // Throws Error if end-of-text tokens are to be written and `tokenizer` has none.
    EncodeBlocksOptions encode_options(const Tokenizer& tokenizer) const;

  private:
    void check_encoding() const;
    void check_decoding() const;
    void check_training() const;
};

}  // namespace hark
