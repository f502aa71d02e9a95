// The command line of gpt-generate.
#pragma once

#include <string>

#include "gpt/engine/answer_writer.h"
#include "gpt/engine/chat.h"
#include "gpt/engine/prompts.h"
#include "gpt/engine/request.h"
#include "kernels/runtime/backend.h"

namespace hark::gpt {

struct GenerateToolOptions {
    std::string model, tokenizer, prompt;
    std::string input_format = "text";
    std::string format;  // empty: jsonl if the input is, else text
    bool echo = false, show_prompt = false, stats = false;
    ChatOptions chat;
    GenerateSettings generate;
    ComputeOptions compute;

    void flags(Flags& flags);
    void check() const;  // throws UsageError
    PromptFormat prompt_format() const;
    AnswerOptions answers() const;
    // Whether --prompt is the prompt itself: it has no {} for the input, and none follows it.
    bool prompt_is_whole() const;
    // Calls use(prompt) for each prompt: --prompt alone, or those of the stream.
    template <class Use>
    void for_each_prompt(PromptReader& prompts, const Use& use) const {
        if (prompt_is_whole()) return use(given_prompt());
        bool any = false;
        while (const auto next = prompts.next()) use(*next), any = true;
        // In a chat, a stream that may follow the prompt may also be empty.
        if (!any && !prompt.empty() && prompt.find("{}") == prompt.npos) use(given_prompt());
    }
    // The prompt with {} for the input; empty: the input alone.
    std::string prompt_template() const;

  private:
    Prompt given_prompt() const;
    bool writes_jsonl() const {
        return format == "jsonl" || (format.empty() && input_format == "jsonl");
    }
};

}  // namespace hark::gpt
