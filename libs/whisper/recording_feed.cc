#include "whisper/recording_feed.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

namespace hark::whisper {
namespace {

constexpr size_t kMostBytes = size_t{256} << 20;

}  // namespace

// What the thread and its reader share; the last of them to end lets go of it.
struct RecordingFeed::Shared {
    Shared(int fd, std::string name, int64_t n_mels, size_t most)
        : in(fd, std::move(name)), n_mels(n_mels), most(most) {}

    ByteReader in;  // the thread's alone
    const int64_t n_mels;
    const size_t most;

    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Arrived> waiting;
    size_t bytes = 0;  // of those
    bool ended = false, abandoned = false;
    std::exception_ptr failure;
};

RecordingFeed::RecordingFeed(int fd, std::string name, int64_t n_mels, size_t most)
    : shared_(std::make_shared<Shared>(fd, std::move(name), n_mels, most)) {
    std::thread([shared = shared_] { read(shared); }).detach();
}

RecordingFeed::~RecordingFeed() {
    const std::lock_guard lock(shared_->mutex);
    shared_->abandoned = true;
    shared_->changed.notify_all();
}

void RecordingFeed::read(const std::shared_ptr<Shared>& shared) {
    std::exception_ptr failure;
    try {
        RecordingReader chunks(shared->in, "mel", "pipe it through mel first");
        std::map<std::string, MelRecording> open;  // those that have not ended
        while (const std::optional<Chunk> chunk = chunks.next()) {
            open[chunk->recording].add(*chunk, shared->n_mels);
            if (!chunk->last) continue;
            Arrived arrived{chunk->source, chunk->channel, chunk->error,
                            std::move(open[chunk->recording])};
            open.erase(chunk->recording);
            std::unique_lock lock(shared->mutex);
            shared->bytes += arrived.mel.bytes();
            shared->waiting.push_back(std::move(arrived));
            shared->changed.notify_all();
            shared->changed.wait(lock, [&] {
                return shared->abandoned ||
                       (shared->waiting.size() < shared->most && shared->bytes < kMostBytes);
            });
            if (shared->abandoned) return;
        }
    } catch (...) {
        failure = std::current_exception();
    }
    const std::lock_guard lock(shared->mutex);
    shared->failure = failure;
    shared->ended = true;
    shared->changed.notify_all();
}

std::optional<Arrived> RecordingFeed::next(bool wait) {
    std::unique_lock lock(shared_->mutex);
    if (wait)
        shared_->changed.wait(lock, [&] { return shared_->ended || !shared_->waiting.empty(); });
    if (shared_->waiting.empty()) return std::nullopt;
    Arrived arrived = std::move(shared_->waiting.front());
    shared_->waiting.pop_front();
    shared_->bytes -= arrived.mel.bytes();
    shared_->changed.notify_all();
    return arrived;
}

bool RecordingFeed::over() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->ended && shared_->waiting.empty();
}

void RecordingFeed::check() const {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->ended && shared_->failure) std::rethrow_exception(shared_->failure);
}

}  // namespace hark::whisper
