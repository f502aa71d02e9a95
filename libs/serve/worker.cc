#include "serve/worker.h"

#include <chrono>
#include <utility>

namespace hark::serve {

void WorkQueue::add(Work work) {
    {
        const std::lock_guard lock(mutex_);
        if (is_closed_) return;
        works_.push_back(std::move(work));
    }
    changed_.notify_one();
}

std::optional<WorkQueue::Work> WorkQueue::take(bool wait) {
    std::unique_lock lock(mutex_);
    if (wait) changed_.wait(lock, [&] { return is_closed_ || !works_.empty(); });
    if (works_.empty()) return std::nullopt;
    Work work = std::move(works_.front());
    works_.pop_front();
    return work;
}

bool WorkQueue::wait(double seconds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                             [&] { return is_closed_ || !works_.empty(); });
}

void WorkQueue::close() {
    {
        const std::lock_guard lock(mutex_);
        is_closed_ = true;
        works_.clear();
    }
    changed_.notify_all();
}

bool WorkQueue::is_closed() {
    const std::lock_guard lock(mutex_);
    return is_closed_;
}

Worker::Worker(int64_t threads) {
    for (int64_t i = 0; i < threads; ++i)
        threads_.emplace_back([this] {
            while (const auto work = queue_.take(true)) (*work)();
        });
}

void Worker::stop() {
    queue_.close();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
}

}  // namespace hark::serve
