#include "formats/chunk_writer.h"

#include <utility>

namespace hark {
namespace {

constexpr size_t kMostBytes = size_t{8} << 20;  // that wait; one chunk may have more

}  // namespace

ChunkWriter::~ChunkWriter() { end(); }

void ChunkWriter::write(Chunk chunk) {
    std::unique_lock lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    changed_.wait(lock, [&] { return failure_ || bytes_ < kMostBytes; });
    if (failure_) std::rethrow_exception(failure_);
    bytes_ += chunk.document.data->size();
    waiting_.push_back(std::move(chunk));
    changed_.notify_all();
}

void ChunkWriter::finish() {
    end();
    if (failure_) std::rethrow_exception(failure_);
}

void ChunkWriter::end() {
    {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

void ChunkWriter::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ended_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        Chunk chunk = std::move(waiting_.front());
        waiting_.pop_front();
        const size_t bytes = chunk.document.data->size();
        lock.unlock();
        try {
            write_chunk(out_, std::move(chunk));
            out_.flush();
        } catch (...) {
            lock.lock();
            failure_ = std::current_exception();
            changed_.notify_all();
            return;
        }
        lock.lock();
        bytes_ -= bytes;
        changed_.notify_all();
    }
}

}  // namespace hark
