#include "gpt/answers/prompt_queue.h"

#include <utility>

namespace hark::gpt {

PromptQueue::PromptQueue(PromptReader& prompts, size_t ahead, Interrupt& interrupt)
    : prompts_(prompts), ahead_(ahead), interrupt_(interrupt), thread_([this] { read(); }) {}

PromptQueue::~PromptQueue() {
    {
        const std::lock_guard lock(mutex_);
        is_left_ = true;
    }
    changed_.notify_all();
    interrupt_.set();
    thread_.join();
}

void PromptQueue::read() {
    const auto has_room = [&] { return queue_.size() < ahead_ || is_left_; };
    while (true) {
        std::optional<Prompt> next;
        std::exception_ptr error;
        try {
            next = prompts_.next();
        } catch (...) {
            error = std::current_exception();
        }
        std::unique_lock lock(mutex_);
        if (next) {
            changed_.wait(lock, has_room);
            queue_.push_back(std::move(*next));
        }
        const bool ends = !next || is_left_;
        if (ends) is_read_ = true, error_ = error;
        changed_.notify_all();
        if (ends) return;
    }
}

std::optional<Prompt> PromptQueue::take(bool wait) {
    std::unique_lock lock(mutex_);
    if (wait) changed_.wait(lock, [&] { return !queue_.empty() || is_read_; });
    if (queue_.empty()) {
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
        return std::nullopt;
    }
    Prompt prompt = std::move(queue_.front());
    queue_.pop_front();
    changed_.notify_all();
    return prompt;
}

bool PromptQueue::has_ended() {
    const std::lock_guard lock(mutex_);
    return is_read_ && queue_.empty() && !error_;
}

}  // namespace hark::gpt
