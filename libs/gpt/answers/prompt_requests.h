// From a prompt to what an engine is asked for.
#pragma once

#include <vector>

#include "gpt/answers/answer_plan.h"
#include "gpt/answers/chat.h"

namespace hark::gpt {

class PromptRequests {
  public:
    // The references must outlive it. `defaults` hold where a prompt has no settings of its own.
    PromptRequests(PromptEncoder& encoder, AnswerPlanner& planner, GenerateOptions defaults);

    struct Asked {
        std::vector<int32_t> ids;  // none of an empty prompt
        GenerateOptions options;
    };
    // What the next prompt asks for. If it cannot be answered, its error says why.
    Asked ask(Prompt& prompt);
    // The same of a prompt whose tokens are given.
    Asked ask(Prompt& prompt, std::vector<int32_t> ids);
    // A constraint that a prompt asks for, as Constraints has it.
    std::shared_ptr<TokenMasks> masks(const ConstraintRequest& request, bool opened) {
        return constraints_.masks(request, opened);
    }
    // The options of one of its samples.
    static GenerateOptions of_sample(const GenerateOptions& options, int64_t sample);
    // Whether the answer is a whole text of its constraint, if it has one. The answer's reason to
    // end is the text's end if the text could only end there.
    static bool is_whole(const GenerateOptions& options, Completion& answer);

  private:
    // Sets the options' constraint, or the prompt's error.
    void constrain(Prompt& prompt, GenerateOptions& options);

    PromptEncoder& encoder_;
    AnswerPlanner& planner_;
    GenerateOptions defaults_;
    Constraints constraints_;
    uint64_t index_ = 0;  // prompts so far that were not empty
};

}  // namespace hark::gpt
