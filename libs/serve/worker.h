// Threads that do one piece of work after another.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace hark::serve {

// Pieces of work, for the threads that take them.
class WorkQueue {
  public:
    using Work = std::function<void()>;

    void add(Work work);
    // The next piece. Without `wait` none, too, if none is there; with it none after close().
    std::optional<Work> take(bool wait);
    // Waits until a piece is there or the queue is closed, for `seconds` at most. Returns whether
    // one of the two has come.
    bool wait(double seconds);
    // Drops the pieces that are left; later ones are dropped too.
    void close();
    bool is_closed();

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Work> works_;
    bool is_closed_ = false;
};

class Worker {
  public:
    explicit Worker(int64_t threads = 1);
    ~Worker() { stop(); }
    Worker(const Worker&) = delete;

    // From any thread. The work throws nothing. Several threads do as many pieces at once.
    void add(WorkQueue::Work work) { queue_.add(std::move(work)); }
    // Ends the threads after the work that runs; what has not begun is dropped.
    void stop();

  private:
    WorkQueue queue_;
    std::vector<std::thread> threads_;
};

}  // namespace hark::serve
