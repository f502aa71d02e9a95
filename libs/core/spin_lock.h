// A lock that a signal handler may take.
#pragma once

#include <atomic>

namespace hark {

// A handler must never wait for the thread that it interrupts: see where each flag is used.
class SpinLock {
  public:
    explicit SpinLock(std::atomic_flag& flag) : flag_(flag) {
        while (flag_.test_and_set(std::memory_order_acquire)) continue;
    }
    ~SpinLock() { flag_.clear(std::memory_order_release); }
    SpinLock(const SpinLock&) = delete;

  private:
    std::atomic_flag& flag_;
};

}  // namespace hark
