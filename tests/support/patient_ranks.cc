// A library that mpirun()'s ranks load first: one that waits for another sleeps. MPI calls
// sched_yield() again and again, which takes a core from other tests, and on a busy machine returns
// long after the message has come.
#include <ctime>

extern "C" int sched_yield() noexcept {
    const timespec pause = {0, 20'000};
    ::nanosleep(&pause, nullptr);
    return 0;
}
