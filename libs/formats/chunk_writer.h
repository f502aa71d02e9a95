// Writes the chunks of a stream while the next ones are computed.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "formats/recordings.h"

namespace hark {

class ChunkWriter {
  public:
    // `out` must outlive it.
    explicit ChunkWriter(ByteWriter& out) : out_(out) {}
    // Waits until all chunks are written, or one could not be.
    ~ChunkWriter();
    ChunkWriter(const ChunkWriter&) = delete;
    ChunkWriter& operator=(const ChunkWriter&) = delete;

    // Writes the chunk after those before it, at once. Waits while a few are not written yet. Its
    // thread starts with the first chunk. Throws what a chunk before it could not be written for.
    void write(Chunk chunk);
    // Waits until all chunks are written; throws as write() does.
    void finish();

  private:
    void work();
    void end();

    ByteWriter& out_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Chunk> waiting_;
    size_t bytes_ = 0;  // of `waiting_`
    bool ended_ = false;
    std::exception_ptr failure_;
    std::thread thread_;
};

}  // namespace hark
