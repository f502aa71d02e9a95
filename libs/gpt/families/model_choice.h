// The language model of a tool, and its tokenizer: --model and --tokenizer.
#pragma once

#include <memory>
#include <string>

#include "core/cli/cli.h"
#include "text/tokenizer.h"

namespace hark::gpt {

class ModelFile;

// The file of a model: its name, or a path. `console` is told if it needs more memory than its
// files. Throws Error if there is none, or if it is no model.
std::shared_ptr<ModelFile> open_named_model(const std::string& name, Console& console);

struct ModelChoice {
    std::string model, tokenizer;

    void flags(Flags& flags);  // begins the section Model
    std::shared_ptr<ModelFile> open(Console& console) const {
        return open_named_model(model, console);
    }
    // That of --tokenizer, else the file's. Throws Error if it has none.
    std::shared_ptr<const Tokenizer> tokenizer_of(const ModelFile& file) const;
};

}  // namespace hark::gpt
