// Answers prompts, one after another: from a prompt to what is written for it.
#pragma once

#include "gpt/answers/prompt_answers.h"

namespace hark::gpt {

class Generator;

class Answerer {
  public:
    // The references must outlive it.
    Answerer(PromptAnswers& answers, Generator& generator, Console& console);

    // Writes the prompt's answers, or its error.
    void operator()(Prompt prompt);

  private:
    void answer(Prompt& prompt, const std::vector<int32_t>& ids, const GenerateOptions& options,
                int64_t sample);

    PromptAnswers& answers_;
    Generator& generator_;
    Console& console_;
    bool is_told_ = false;  // that the prompt cache is of no use
};

}  // namespace hark::gpt
