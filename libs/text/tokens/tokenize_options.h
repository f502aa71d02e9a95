// The command line of gpt-tokenize.
#pragma once

#include <string>
#include <vector>

#include "text/tokens/documents.h"
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

  private:
    void check_encoding() const;
    void check_decoding() const;
    void check_training() const;
};

}  // namespace hark
