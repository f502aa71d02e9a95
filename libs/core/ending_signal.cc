#include "core/ending_signal.h"

#include <unistd.h>

#include <csignal>
#include <thread>
#include <utility>

namespace hark {
namespace {

sigset_t ending_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM}) {
        struct sigaction now = {};
        ::sigaction(signal, nullptr, &now);
        if (now.sa_handler != SIG_IGN) sigaddset(&set, signal);  // as behind nohup
    }
    return set;
}

}  // namespace

void hold_ending_signals() {
    const sigset_t signals = ending_signals();
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void on_ending_signal(std::function<void()> end) {
    std::thread([end = std::move(end)] {
        const sigset_t signals = ending_signals();
        int signal = 0;
        while (::sigwait(&signals, &signal) != 0) ::pause();  // where all are ignored
        end();
        ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
        for (;;) ::pause();
    }).detach();
}

}  // namespace hark
