#include "audio/read_ahead.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "core/machine/available_memory.h"
#include "core/machine/cgroup.h"

namespace hark {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kAheadSamples = 4 * 30 * kSampleRate;  // per input
// A thread decodes a recording of two hours in about as long.
constexpr double kAheadSeconds = 10;
constexpr std::chrono::seconds kEndTimeout{2};

}  // namespace

struct ReadAhead::Shared {
    struct Queue {
        std::deque<Chunk> chunks;
        int64_t samples = 0;  // in chunks
        bool ended = false;
    };
    std::vector<std::string> paths;
    ReadOptions options;
    int64_t chunk_samples;
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Queue> queues;
    size_t begun = 0;
    size_t current = 0;  // the input that next() reads
    size_t working = 0;  // threads
    // Samples in all queues: now, the most, the most if the reader is slow.
    int64_t ahead = 0, most_ahead = 0, most_unasked = 0;
    int64_t taken = 0;  // samples that next() has returned
    const Clock::time_point started = Clock::now();
    bool is_awaited = false;  // next() waits
    bool stopped = false;

    void work();
    void decode_inputs();
    bool put(Queue& queue, Chunk chunk);
    bool has_room() const;
};

int64_t affordable_samples_ahead() {
    const int64_t memory = std::min(available_memory(), cgroup_memory().value_or(INT64_MAX));
    return std::min(int64_t{4} << 30, memory / 8) / static_cast<int64_t>(sizeof(float));
}

ReadAhead::ReadAhead(std::vector<std::string> paths, const ReadOptions& options,
                     int64_t chunk_samples, int jobs, int64_t most_ahead)
    : shared_(std::make_shared<Shared>()) {
    shared_->queues.resize(paths.size());
    jobs = std::min(jobs, static_cast<int>(paths.size()));
    shared_->paths = std::move(paths);
    shared_->options = options;
    shared_->chunk_samples = chunk_samples;
    shared_->most_ahead = most_ahead;
    shared_->most_unasked = std::min(jobs * kAheadSamples, most_ahead);
    shared_->working = static_cast<size_t>(jobs);
    for (int i = 0; i < jobs; ++i) threads_.emplace_back([shared = shared_] { shared->work(); });
}

// A thread that decodes during exit() would use destroyed objects.
ReadAhead::~ReadAhead() {
    std::unique_lock lock(shared_->mutex);
    shared_->stopped = true;
    shared_->changed.notify_all();
    const bool ended =
        shared_->changed.wait_for(lock, kEndTimeout, [&] { return shared_->working == 0; });
    lock.unlock();
    for (std::thread& thread : threads_) {
        if (ended)
            thread.join();
        else
            thread.detach();
    }
}

void ReadAhead::Shared::work() {
    decode_inputs();
    const std::lock_guard lock(mutex);
    --working;
    changed.notify_all();
}

void ReadAhead::Shared::decode_inputs() {
    for (;;) {
        size_t index;
        {
            const std::lock_guard lock(mutex);
            if (stopped || begun == paths.size()) return;
            index = begun++;
        }
        AudioChunks chunks(paths[index], std::to_string(index + 1), options, chunk_samples);
        while (std::optional<Chunk> chunk = chunks.next())
            if (!put(queues[index], std::move(*chunk))) return;
        const std::lock_guard lock(mutex);
        queues[index].ended = true;
        changed.notify_all();
    }
}

// Whether any input may hold more: if next() waits, or the queues have less than it takes in ten
// seconds.
bool ReadAhead::Shared::has_room() const {
    if (ahead >= most_ahead) return false;
    const std::chrono::duration<double> elapsed = Clock::now() - started;
    return is_awaited || static_cast<double>(ahead) * elapsed.count() <
                             static_cast<double>(taken) * kAheadSeconds;
}

// Returns false if the reader has stopped.
bool ReadAhead::Shared::put(Queue& queue, Chunk chunk) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] {
        if (stopped || has_room()) return true;
        return queue.samples < kAheadSamples &&
               (ahead < most_unasked || &queue == &queues[current]);
    });
    queue.samples += chunk.length();
    ahead += chunk.length();
    queue.chunks.push_back(std::move(chunk));
    changed.notify_all();
    return !stopped;
}

std::optional<Chunk> ReadAhead::next() {
    Shared& s = *shared_;
    std::unique_lock lock(s.mutex);
    for (; s.current < s.queues.size(); ++s.current) {
        Shared::Queue& queue = s.queues[s.current];
        const auto has_come = [&] { return queue.ended || !queue.chunks.empty(); };
        if (!has_come()) {
            s.is_awaited = true;
            s.changed.notify_all();
            s.changed.wait(lock, has_come);
            s.is_awaited = false;
        }
        if (queue.chunks.empty()) continue;
        Chunk chunk = std::move(queue.chunks.front());
        queue.chunks.pop_front();
        queue.samples -= chunk.length();
        s.ahead -= chunk.length();
        s.taken += chunk.length();
        s.changed.notify_all();
        return chunk;
    }
    return std::nullopt;
}

}  // namespace hark
