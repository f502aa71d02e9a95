// Without threads a prompt is read when it is taken.
#include "gpt/answers/prompt_queue.h"

#include <utility>

namespace hark::gpt {

PromptQueue::PromptQueue(PromptReader& prompts, size_t ahead, Interrupt& interrupt)
    : prompts_(prompts), ahead_(ahead), interrupt_(interrupt) {}

PromptQueue::~PromptQueue() = default;

std::optional<Prompt> PromptQueue::take(bool) {
    std::optional<Prompt> next = prompts_.next();
    is_read_ = !next;
    return next;
}

bool PromptQueue::has_ended() { return is_read_; }

}  // namespace hark::gpt
