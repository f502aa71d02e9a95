// The command line of gpt-generate.
#pragma once

#include <string>

#include "gpt/engine/answer_writer.h"
#include "gpt/engine/generate.h"
#include "gpt/engine/prompts.h"
#include "kernels/runtime/backend.h"

namespace hark::gpt {

struct GenerateToolOptions {
    std::string model, tokenizer, prompt;
    std::string input_format = "text";
    std::string format;  // empty: jsonl if the input is, else text
    bool echo = false, logprobs = false;
    GenerateOptions generate;
    ComputeOptions compute;

    void flags(Flags& flags);
    void check() const;  // throws UsageError
    PromptFormat prompt_format() const;
    AnswerOptions answers() const;
    // Whether --prompt is the prompt itself: it has no {} for the input.
    bool prompt_is_whole() const { return !prompt.empty() && prompt.find("{}") == prompt.npos; }

  private:
    bool writes_jsonl() const {
        return format == "jsonl" || (format.empty() && input_format == "jsonl");
    }
};

}  // namespace hark::gpt
