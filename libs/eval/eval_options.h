// The command line of whisper-eval.
#pragma once

#include <string>

#include "core/cli/cli.h"
#include "eval/normalizer.h"

namespace hark {

struct EvalOptions {
    std::string reference;
    std::string normalizer = "english", format = "text";
    bool differences = false;
    BasicNormalizerOptions basic;

    void flags(Flags& flags);
    void check() const;  // throws UsageError
    // The text as --normalizer compares it.
    std::string normalize(const std::string& text) const;
};

}  // namespace hark
