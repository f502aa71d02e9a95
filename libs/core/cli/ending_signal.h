// SIGINT, SIGTERM and SIGHUP: requests to end.
#pragma once

#include <csignal>
#include <functional>

namespace hark {

// Those of the three that are not ignored; nohup ignores SIGHUP.
sigset_t ending_signals();
// Holds the signals back from this thread and all that it starts from now on: before others run.
void hold_ending_signals();

// Holds them back too, and waits for them on a thread of its own. Until on_ending_signal()
// they end the process as if nothing held them back. Called once.
void watch_ending_signals();
// Calls `end`, once and on that thread, when the first signal comes. The next one ends the process.
void on_ending_signal(std::function<void()> end);

// For a tool that a person talks to: while it lives, the first SIGINT only sets interrupted(). The
// next one, without clear_interrupt() between them, ends the process. There is one at a time.
class InterruptFlag {
  public:
    InterruptFlag();
    ~InterruptFlag();
    InterruptFlag(const InterruptFlag&) = delete;
    InterruptFlag& operator=(const InterruptFlag&) = delete;

  private:
    struct sigaction before_;
};
bool interrupted();
void clear_interrupt();

}  // namespace hark
