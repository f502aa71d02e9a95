// No signal reaches a WebAssembly program.
#include "core/cli/ending_signal.h"

namespace hark {

sigset_t ending_signals() {
    sigset_t none;
    sigemptyset(&none);
    return none;
}

void hold_ending_signals() {}

void watch_ending_signals() {}

void on_ending_signal(std::function<void()>) {}

InterruptFlag::InterruptFlag() = default;

InterruptFlag::~InterruptFlag() = default;

bool interrupted() { return false; }

void clear_interrupt() {}

}  // namespace hark
