// A bounded queue filled by a reader thread of its own.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/files/io.h"

namespace hark {

template <class Item>
class ReaderQueue {
  public:
    // Adds an item of `bytes` bytes, then waits while the queue is full. Returns false if the queue
    // has been stopped or is being destroyed.
    using Put = std::function<bool(Item, size_t bytes)>;

    // The thread's function. Its input must end once `interrupt` is set.
    using Read = std::function<void(const Put& put, const Interrupt& interrupt)>;

    // Runs `read` on a thread. `put` waits while the queue has `most` items or `most_bytes` bytes.
    // check() throws the exception of `read`.
    ReaderQueue(Read read, size_t most, size_t most_bytes)
        : shared_(std::make_shared<Shared>(most, most_bytes)),
          thread_([shared = shared_.get(), read = std::move(read)] { shared->run(read); }) {}
    // Ends the thread, even if it waits for input.
    ~ReaderQueue() {
        shared_->abandon();
        thread_.join();
    }
    ReaderQueue(const ReaderQueue&) = delete;
    ReaderQueue& operator=(const ReaderQueue&) = delete;

    // Takes the first item. nullopt if the queue is empty: with `wait`, only if it is over().
    std::optional<Item> next(bool wait) {
        std::unique_lock lock(shared_->mutex);
        if (wait)
            shared_->changed.wait(lock,
                                  [&] { return shared_->ended || !shared_->waiting.empty(); });
        if (shared_->waiting.empty()) return std::nullopt;
        auto [item, bytes] = std::move(shared_->waiting.front());
        shared_->waiting.pop_front();
        shared_->bytes -= bytes;
        shared_->changed.notify_all();
        return std::move(item);
    }
    // Whether no item is available now.
    bool empty() const {
        const std::lock_guard lock(shared_->mutex);
        return shared_->waiting.empty();
    }
    // Whether the thread has ended and all items have been taken.
    bool over() const {
        const std::lock_guard lock(shared_->mutex);
        return shared_->ended && shared_->waiting.empty();
    }
    // Throws the exception that ended the thread, if any.
    void check() const {
        const std::lock_guard lock(shared_->mutex);
        if (shared_->ended && shared_->failure) std::rethrow_exception(shared_->failure);
    }
    // A function that ends the queue after the items it has. Any thread may call it, even after the
    // queue's destruction. It discards exceptions of the reader thread.
    std::function<void()> stopper() const {
        return [shared = shared_] { shared->stop(); };
    }

  private:
    // A stopper may outlive the queue.
    struct Shared {
        Shared(size_t most, size_t most_bytes) : most(most), most_bytes(most_bytes) {}

        void run(const Read& read) {
            std::exception_ptr broken;
            try {
                read([this](Item item, size_t size) { return put(std::move(item), size); },
                     interrupt);
            } catch (...) {
                broken = std::current_exception();
            }
            end(broken);
        }
        bool put(Item item, size_t size) {
            std::unique_lock lock(mutex);
            if (ended || abandoned) return false;
            bytes += size;
            waiting.push_back({std::move(item), size});
            changed.notify_all();
            changed.wait(lock, [&] {
                return ended || abandoned || (waiting.size() < most && bytes < most_bytes);
            });
            return !ended && !abandoned;
        }
        void abandon() {
            const std::lock_guard lock(mutex);
            abandoned = true;
            changed.notify_all();
            interrupt.set();
        }
        void end(std::exception_ptr broken) {
            const std::lock_guard lock(mutex);
            if (!ended) failure = std::move(broken);
            ended = true;
            changed.notify_all();
        }
        // Discards a failure too: the signal that led here may have caused it.
        void stop() {
            const std::lock_guard lock(mutex);
            failure = nullptr;
            ended = true;
            changed.notify_all();
        }

        const size_t most, most_bytes;
        Interrupt interrupt;
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<std::pair<Item, size_t>> waiting;
        size_t bytes = 0;  // of `waiting`
        bool ended = false, abandoned = false;
        std::exception_ptr failure;
    };

    std::shared_ptr<Shared> shared_;
    std::thread thread_;
};

}  // namespace hark
