// SIGINT and SIGTERM as an end that a tool is asked to come to.
#pragma once

#include <functional>

namespace hark {

// Holds the signals back from this thread and all that it starts from now on: before others run.
void hold_ending_signals();
// Calls `end`, once and on a thread of its own, when one of the signals that are held back comes.
// The next one ends the process.
void on_ending_signal(std::function<void()> end);

}  // namespace hark
