// What a prompt asks for, and what is written of its answers.
#pragma once

#include <chrono>

#include "gpt/engine/answer_plan.h"
#include "gpt/engine/answer_writer.h"
#include "gpt/engine/chat.h"

namespace hark::gpt {

class PromptAnswers {
  public:
    // The references must outlive it. `defaults` hold where a prompt has no settings of its own.
    PromptAnswers(PromptEncoder& encoder, AnswerPlanner& planner, GenerateOptions defaults,
                  AnswerWriter& writer, Console& console);

    struct Asked {
        std::vector<int32_t> ids;  // none of an empty prompt
        GenerateOptions options;
    };
    // What the next prompt asks for. If it cannot be answered, its error says why.
    Asked ask(Prompt& prompt);
    // The options of one of its samples.
    static GenerateOptions of_sample(const GenerateOptions& options, int64_t sample);
    // Writes the end of an answer whose text has been written, or gives the prompt its error.
    void end(Prompt& prompt, int64_t sample, Completion& answer, const GenerateOptions& options);
    AnswerWriter& writer() { return writer_; }

  private:
    // Sets the options' constraint, or the prompt's error.
    void constrain(Prompt& prompt, GenerateOptions& options);
    // Says so if the answer is not a whole text of its constraint.
    void check_end(const Prompt& prompt, const GenerateOptions& options, Completion& answer);

    PromptEncoder& encoder_;
    AnswerPlanner& planner_;
    GenerateOptions defaults_;
    Constraints constraints_;
    AnswerWriter& writer_;
    Console& console_;
    uint64_t index_ = 0;  // prompts so far that were not empty
};

}  // namespace hark::gpt
