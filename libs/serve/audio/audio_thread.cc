#include "serve/audio/audio_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/profile/profile.h"

namespace hark::serve {

AudioThread::AudioThread() : thread_([this] { run(); }) {}

void AudioThread::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_closed_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void AudioThread::add(std::shared_ptr<AudioTask> task) {
    {
        const std::lock_guard lock(mutex_);
        added_.push_back(std::move(task));
    }
    changed_.notify_all();
}

void AudioThread::wake() {
    {
        const std::lock_guard lock(mutex_);
        is_awake_ = true;
    }
    changed_.notify_all();
}

AudioThread::Entry* AudioThread::next() {
    Entry* best = nullptr;
    ready_shares_ = 0;
    for (Entry& entry : tasks_) {
        if (!entry.task->is_ready()) {
            entry.has_waited = true;
            continue;
        }
        if (std::exchange(entry.has_waited, false)) entry.seconds = std::max(entry.seconds, now_);
        entry.shares = std::max(entry.task->shares(), 1.0);
        ready_shares_ += entry.shares;
        if (!best || entry.seconds < best->seconds) best = &entry;
    }
    return best;
}

void AudioThread::run() {
    using Clock = std::chrono::steady_clock;
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            is_awake_ = false;
            for (std::shared_ptr<AudioTask>& task : added_) tasks_.push_back({std::move(task)});
            added_.clear();
            if (is_closed_) break;
        }
        Entry* const entry = next();
        if (!entry) {
            const ProfileSpan span("wait.in");
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return is_closed_ || is_awake_ || !added_.empty(); });
            continue;
        }
        const Clock::time_point begin = Clock::now();
        const bool goes_on = entry->task->step();
        const std::chrono::duration<double> took = Clock::now() - begin;
        entry->seconds += took.count() / entry->shares;
        // For a task that has ended too: else those that come and go would always be the next.
        now_ += took.count() / ready_shares_;
        if (!goes_on) tasks_.erase(tasks_.begin() + (entry - tasks_.data()));
    }
    tasks_.clear();
}

}  // namespace hark::serve
