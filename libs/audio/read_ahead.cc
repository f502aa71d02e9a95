#include "audio/read_ahead.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "audio/resampled_part.h"
#include "core/machine/available_memory.h"
#include "core/machine/cgroup.h"
#include "core/profile/profile.h"

namespace hark {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kAheadSamples = 4 * 30 * kSampleRate;  // per input
// A thread decodes a recording of two hours in about as long.
constexpr double kAheadSeconds = 10;
constexpr std::chrono::seconds kEndTimeout{2};

}  // namespace

struct ReadAhead::Shared : std::enable_shared_from_this<Shared> {
    // The helpers of one input: all threads.
    class InputHelpers : public Helpers {
      public:
        InputHelpers(Shared& shared, size_t index) : shared_(shared), index_(index) {}
        std::shared_ptr<PartSink> make_sink(int64_t position) override {
            return std::make_shared<ResampledPart>(shared_.options.split_channels, position);
        }
        void offer(std::weak_ptr<SharedPart> part) override {
            shared_.add_part(index_, std::move(part));
        }

      private:
        Shared& shared_;
        size_t index_;
    };
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
    std::condition_variable has_work;  // for threads that have nothing to do
    std::vector<std::thread> threads;
    size_t most_threads, idle = 0, working = 0;
    std::map<size_t, std::deque<std::weak_ptr<SharedPart>>> parts;  // of each input
    std::vector<Queue> queues;
    size_t begun = 0, ended = 0;
    size_t current = 0;  // the input that next() reads
    // Samples in all queues: now, the most, the most if the reader is slow.
    int64_t ahead = 0, most_ahead = 0, most_unasked = 0;
    int64_t taken = 0;  // samples that next() has returned
    const Clock::time_point started = Clock::now();
    bool is_awaited = false;  // next() waits
    bool stopped = false;

    void start_thread();
    void work();
    void decode_input(size_t index);
    void add_part(size_t index, std::weak_ptr<SharedPart> part);
    std::shared_ptr<SharedPart> take_part();
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
    shared_->paths = std::move(paths);
    shared_->options = options;
    shared_->chunk_samples = chunk_samples;
    shared_->most_ahead = most_ahead;
    const int64_t inputs = static_cast<int64_t>(shared_->paths.size());
    shared_->most_unasked = std::min(std::min<int64_t>(jobs, inputs) * kAheadSamples, most_ahead);
    shared_->most_threads = static_cast<size_t>(jobs);
    const std::lock_guard lock(shared_->mutex);
    for (size_t i = 0; i < std::min(shared_->most_threads, shared_->paths.size()); ++i)
        shared_->start_thread();
}

// A thread that decodes during exit() would use destroyed objects.
ReadAhead::~ReadAhead() {
    std::unique_lock lock(shared_->mutex);
    shared_->stopped = true;
    shared_->changed.notify_all();
    shared_->has_work.notify_all();
    const bool ended =
        shared_->changed.wait_for(lock, kEndTimeout, [&] { return shared_->working == 0; });
    std::vector<std::thread> threads = std::move(shared_->threads);
    lock.unlock();
    for (std::thread& thread : threads) {
        if (ended)
            thread.join();
        else
            thread.detach();
    }
}

// Where the system starts no more threads, those that there are decode all.
void ReadAhead::Shared::start_thread() {
    try {
        threads.emplace_back([shared = shared_from_this()] { shared->work(); });
    } catch (const std::system_error&) {
        if (threads.empty()) throw;
        return;
    }
    ++working;  // the new thread waits for the lock, which the caller has
}

void ReadAhead::Shared::work() {
    std::unique_lock lock(mutex);
    while (!stopped && ended < paths.size()) {
        if (std::shared_ptr<SharedPart> part = take_part()) {
            lock.unlock();
            {
                const ProfileSpan span("decode.part");
                part->decode();
            }
            part.reset();
            lock.lock();
        } else if (begun < paths.size()) {
            const size_t index = begun++;
            lock.unlock();
            decode_input(index);
            lock.lock();
            queues[index].ended = true;
            if (++ended == paths.size()) has_work.notify_all();
            changed.notify_all();
        } else {
            ++idle;
            has_work.wait(lock);
            --idle;
        }
    }
    --working;
    changed.notify_all();
}

void ReadAhead::Shared::decode_input(size_t index) {
    InputHelpers helpers(*this, index);
    // With --duration nothing is read after its end: a loss there would be the recording's.
    const bool has_helpers = most_threads > 1 && !options.duration;
    const auto open = [&](Input& input) {
        return open_decoder(input, static_cast<int>(options.track),
                            has_helpers ? &helpers : nullptr);
    };
    AudioChunks chunks(paths[index], std::to_string(index + 1), options, chunk_samples, open);
    while (std::optional<Chunk> chunk = chunks.next())
        if (!put(queues[index], std::move(*chunk))) return;
}

void ReadAhead::Shared::add_part(size_t index, std::weak_ptr<SharedPart> part) {
    const std::lock_guard lock(mutex);
    std::deque<std::weak_ptr<SharedPart>>& offered = parts[index];
    while (!offered.empty() && offered.front().expired()) offered.pop_front();
    offered.push_back(std::move(part));
    if (idle > 0)
        has_work.notify_one();
    else if (threads.size() < most_threads && !stopped)
        start_thread();
}

// Returns the oldest open part; null if there is none.
std::shared_ptr<SharedPart> ReadAhead::Shared::take_part() {
    while (!parts.empty()) {
        std::deque<std::weak_ptr<SharedPart>>& offered = parts.begin()->second;
        while (!offered.empty()) {
            std::shared_ptr<SharedPart> part = offered.front().lock();
            offered.pop_front();
            if (part && part->is_open()) return part;
        }
        parts.erase(parts.begin());
    }
    return nullptr;
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
