// The queue without threads: the whole input is read when the first item is asked for.
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "core/files/io.h"

namespace hark {

template <class Item>
class ReaderQueue {
  public:
    using Put = std::function<bool(Item, size_t bytes)>;
    using Read = std::function<void(const Put& put, const Interrupt& interrupt)>;

    // The limits are a thread's: here nothing takes items before all are read.
    ReaderQueue(Read read, size_t, size_t) : read_(std::move(read)) {}
    ReaderQueue(const ReaderQueue&) = delete;
    ReaderQueue& operator=(const ReaderQueue&) = delete;

    std::optional<Item> next(bool) {
        read_all();
        if (waiting_.empty()) return std::nullopt;
        Item item = std::move(waiting_.front());
        waiting_.pop_front();
        return item;
    }
    bool empty() const { return waiting_.empty(); }
    bool over() const { return is_read_ && waiting_.empty(); }
    void check() const {
        if (failure_) std::rethrow_exception(failure_);
    }
    // No signal comes that could end the queue.
    std::function<void()> stopper() const {
        return [] {};
    }

  private:
    void read_all() {
        if (std::exchange(is_read_, true)) return;
        const Interrupt never;
        try {
            read_(
                [this](Item item, size_t) {
                    waiting_.push_back(std::move(item));
                    return true;
                },
                never);
        } catch (...) {
            failure_ = std::current_exception();
        }
    }

    Read read_;
    std::deque<Item> waiting_;
    bool is_read_ = false;
    std::exception_ptr failure_;
};

}  // namespace hark
