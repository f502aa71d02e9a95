#include "core/clean_up.h"

#include <array>
#include <atomic>
#include <csignal>

#include "core/error.h"

namespace hark {
namespace {

constexpr int kEndingSignals[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU, SIGXFSZ};

std::array<std::atomic<void (*)()>, 4> clean_up_actions;
std::atomic_flag clean_up_has_begun, clean_up_is_done;

}  // namespace

void handle_ending_signals() {
    static const bool installed = [] {
        struct sigaction action = {};
        action.sa_handler = clean_up_and_end;
        action.sa_flags = SA_RESTART;
        sigfillset(&action.sa_mask);  // no other signal interrupts the cleaning up
        for (const int signal : kEndingSignals) {
            struct sigaction now = {};
            ::sigaction(signal, nullptr, &now);
            if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL)
                ::sigaction(signal, &action, nullptr);
        }
        return true;
    }();
    (void)installed;
}

void add_clean_up(void (*action)()) {
    for (auto& place : clean_up_actions) {
        void (*held)() = nullptr;
        if (place.compare_exchange_strong(held, action) || held == action)
            return handle_ending_signals();
    }
    fail("internal error: too many parts of cleaning up");
}

void clean_up() {
    if (clean_up_has_begun.test_and_set(std::memory_order_acquire)) {
        while (!clean_up_is_done.test(std::memory_order_acquire)) continue;
        return;
    }
    for (auto& place : clean_up_actions)
        if (void (*const action)() = place.load()) action();
    clean_up_is_done.test_and_set(std::memory_order_release);
}

void clean_up_and_end(int signal) {
    clean_up();
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

}  // namespace hark
