// Answers prompts, one after another: from a prompt to what is written for it.
#pragma once

#include "gpt/engine/answer_writer.h"
#include "gpt/engine/chat.h"
#include "gpt/engine/generate.h"

namespace hark::gpt {

class Answerer {
  public:
    // The references must outlive it. `defaults` hold where a prompt has no settings of its own.
    Answerer(PromptEncoder& encoder, Generator& generator, GenerateOptions defaults,
             AnswerWriter& answers, Console& console);

    // Writes the prompt's answers, or its error.
    void operator()(Prompt prompt);

  private:
    void answer(Prompt& prompt, const std::vector<int32_t>& ids, const GenerateOptions& options,
                int64_t sample);

    PromptEncoder& encoder_;
    Generator& generator_;
    GenerateOptions defaults_;
    AnswerWriter& answers_;
    Console& console_;
    uint64_t index_ = 0;  // prompts so far that were not empty
    bool is_told_ = false;  // that the prompt cache is of no use
};

}  // namespace hark::gpt
