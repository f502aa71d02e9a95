// What a prompt asks for, and what is written of its answers.
#pragma once

#include <chrono>

#include "gpt/answers/answer_writer.h"
#include "gpt/answers/prompt_requests.h"

namespace hark::gpt {

class PromptAnswers {
  public:
    // The references must outlive it. `defaults` hold where a prompt has no settings of its own.
    PromptAnswers(PromptEncoder& encoder, AnswerPlanner& planner, GenerateOptions defaults,
                  AnswerWriter& writer, Console& console);

    // What the next prompt asks for. If it cannot be answered, its error says why.
    PromptRequests::Asked ask(Prompt& prompt);
    // Writes the end of an answer whose text has been written, or gives the prompt its error.
    void end(Prompt& prompt, int64_t sample, Completion& answer, const GenerateOptions& options);
    AnswerWriter& writer() { return writer_; }

  private:
    // Says so if the answer is not a whole text of its constraint.
    void check_end(const Prompt& prompt, const GenerateOptions& options, Completion& answer);

    PromptEncoder& encoder_;
    PromptRequests requests_;
    AnswerWriter& writer_;
    Console& console_;
};

}  // namespace hark::gpt
