// The command line of gpt-embed.
#pragma once

#include <optional>
#include <string>

#include "gpt/answers/prompts.h"
#include "gpt/embed/embedder.h"
#include "gpt/embed/vector_writer.h"
#include "gpt/families/model_choice.h"
#include "kernels/runtime/backend.h"

namespace hark::gpt {

struct EmbedToolOptions {
    ModelChoice choice;
    std::string instruction, prompt_name, nearest;
    std::string input_format = "lines", format = "jsonl", pooling = "auto";
    int64_t dimensions = 0;
    std::optional<int64_t> matches;  // 10, if there are none
    bool normalize = true, truncate = false;
    ComputeOptions compute;

    void flags(Flags& flags);
    void check() const;  // throws UsageError
    PromptFormat prompt_format() const;
    VectorOutput output() const;
    EmbedOptions embed(const EmbeddingSettings& settings) const;
    // What is put before each text. Throws Error if the model has no prompt of --prompt-name.
    std::string before_text(const EmbeddingSettings& settings) const;
};

}  // namespace hark::gpt
