// What a thread of its own reads, waiting in a bounded queue until it is taken.
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

#include "core/io.h"

namespace hark::whisper {

template <class Item>
class Feed {
  public:
    // Hands an item of so many bytes over, and waits while the queue is full; false where nobody
    // takes items any more.
    using Put = std::function<bool(Item, size_t bytes)>;

    // What the thread does; its input ends once `interrupt` is set.
    using Read = std::function<void(const Put& put, const Interrupt& interrupt)>;

    // Begins to run `read` on a thread. It waits in `put` while `most` items, or `most_bytes` of
    // them, are to be taken. What it throws breaks the feed.
    Feed(Read read, size_t most, size_t most_bytes)
        : shared_(std::make_shared<Shared>(most, most_bytes)),
          thread_([shared = shared_.get(), read = std::move(read)] { shared->run(read); }) {}
    // Ends the thread, also where it waits for its input.
    ~Feed() {
        shared_->abandon();
        thread_.join();
    }
    Feed(const Feed&) = delete;
    Feed& operator=(const Feed&) = delete;

    // The first item not yet taken. nullopt: there is none yet, which `wait` rules out, or the
    // feed is over().
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
    // Whether there is none to be taken now.
    bool empty() const {
        const std::lock_guard lock(shared_->mutex);
        return shared_->waiting.empty();
    }
    // Whether the thread has ended, or broken, and all that it put has been taken.
    bool over() const {
        const std::lock_guard lock(shared_->mutex);
        return shared_->ended && shared_->waiting.empty();
    }
    // Throws what broke the feed, if anything did.
    void check() const {
        const std::lock_guard lock(shared_->mutex);
        if (shared_->ended && shared_->failure) std::rethrow_exception(shared_->failure);
    }
    // What ends the feed behind the items that have come, from any thread and even when the feed is
    // no more; what breaks afterwards is nobody's concern.
    std::function<void()> stopper() const {
        return [shared = shared_] { shared->stop(); };
    }

  private:
    // A stopper may outlive the feed.
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
        // What the signal behind it may have broken just before is nobody's concern either.
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
        size_t bytes = 0;  // of those
        bool ended = false, abandoned = false;
        std::exception_ptr failure;
    };

    std::shared_ptr<Shared> shared_;
    std::thread thread_;
};

}  // namespace hark::whisper
