// Where the prompts of a batch come from.
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

class PromptSource {
  public:
    virtual ~PromptSource() = default;
    // The next prompt. Without `wait` none, too, if none has come yet. Throws what the reader has
    // thrown, after the prompts before that.
    virtual std::optional<Prompt> take(bool wait) = 0;
    // Whether all prompts have been taken.
    virtual bool has_ended() = 0;
};

// Reads a prompt when it is taken, on the caller's thread: for several processes, which read alike.
class UnqueuedPrompts : public PromptSource {
  public:
    // Holds the reference.
    explicit UnqueuedPrompts(PromptReader& prompts) : prompts_(prompts) {}

    std::optional<Prompt> take(bool) override {
        std::optional<Prompt> next = prompts_.next();
        has_ended_ = !next;
        return next;
    }
    bool has_ended() override { return has_ended_; }

  private:
    PromptReader& prompts_;
    bool has_ended_ = false;
};

// Prompts that a thread reads ahead.
class PromptQueue : public PromptSource {
  public:
    // Reads up to `ahead` prompts ahead. `interrupt` is that of the reader's stream; both must
    // outlive it.
    PromptQueue(PromptReader& prompts, size_t ahead, Interrupt& interrupt);
    ~PromptQueue() override;

    std::optional<Prompt> take(bool wait) override;
    bool has_ended() override;

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
