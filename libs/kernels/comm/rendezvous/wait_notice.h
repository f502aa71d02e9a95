// What a process waits for, said once it has waited for some seconds.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "kernels/comm/rendezvous/tcp_socket.h"

namespace hark {

class WaitNotice {
  public:
    explicit WaitNotice(std::function<void(const std::string&)> print) : print_(std::move(print)) {}

    // Prints the text if next() has passed: after 2 s, then once per minute.
    void say(const std::string& text) {
        if (Clock::now() < next_) return;
        print_(text);
        next_ = Clock::now() + std::chrono::minutes(1);
    }
    Deadline next() const { return next_; }

  private:
    using Clock = std::chrono::steady_clock;

    std::function<void(const std::string&)> print_;
    Deadline next_ = Clock::now() + std::chrono::seconds(2);
};

}  // namespace hark
