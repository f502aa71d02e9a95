// Prompts that a thread reads ahead.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "gpt/answers/prompts.h"

namespace hark::gpt {

class PromptQueue {
  public:
    // Reads up to `ahead` prompts ahead. `interrupt` is that of the reader's stream; both must
    // outlive it.
    PromptQueue(PromptReader& prompts, size_t ahead, Interrupt& interrupt);
    ~PromptQueue();

    // The next prompt. Without `wait` none, too, if none has come yet. Throws what the reader has
    // thrown, after the prompts before that.
    std::optional<Prompt> take(bool wait);
    // Whether all prompts have been taken.
    bool has_ended();

  private:
    void read();

    PromptReader& prompts_;
    size_t ahead_;
    Interrupt& interrupt_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Prompt> queue_;
    bool is_read_ = false, is_left_ = false;  // the stream's end; the queue's own
    std::exception_ptr error_;
    std::thread thread_;
};

}  // namespace hark::gpt
