#include "core/cli/ending_signal.h"

#include <unistd.h>

#include <mutex>
#include <thread>
#include <utility>

#include "core/clean_up.h"

namespace hark {
namespace {

struct Watch {
    std::mutex mutex;
    std::function<void()> end;
};

// Outlives main(), as the thread does.
Watch& watch() {
    static auto* const only = new Watch;
    return *only;
}

volatile std::sig_atomic_t interrupt = 0;

void set_interrupt(int signal) {
    if (interrupt) clean_up_and_end(signal);
    interrupt = 1;
}

void wait_for_signal() {
    const sigset_t signals = ending_signals();
    int signal = 0;
    while (::sigwait(&signals, &signal) != 0) ::pause();  // where all are ignored
    std::function<void()> end;
    {
        const std::lock_guard lock(watch().mutex);
        end = watch().end;
    }
    if (end) end();
    ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    if (!end) ::kill(::getpid(), signal);
    for (;;) ::pause();
}

}  // namespace

sigset_t ending_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction now = {};
        ::sigaction(signal, nullptr, &now);
        if (now.sa_handler != SIG_IGN) sigaddset(&set, signal);
    }
    return set;
}

void hold_ending_signals() {
    const sigset_t signals = ending_signals();
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void watch_ending_signals() {
    hold_ending_signals();
    std::thread(wait_for_signal).detach();
}

void on_ending_signal(std::function<void()> end) {
    const std::lock_guard lock(watch().mutex);
    watch().end = std::move(end);
}

InterruptFlag::InterruptFlag() {
    clear_interrupt();
    handle_ending_signals();  // before_ is restored: files may be begun while this lives
    struct sigaction action = {};
    action.sa_handler = set_interrupt;  // without SA_RESTART: waiting for a key ends too
    sigfillset(&action.sa_mask);
    ::sigaction(SIGINT, &action, &before_);
}

InterruptFlag::~InterruptFlag() {
    ::sigaction(SIGINT, &before_, nullptr);
    clear_interrupt();
}

bool interrupted() { return interrupt != 0; }

void clear_interrupt() { interrupt = 0; }

}  // namespace hark
