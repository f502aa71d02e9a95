// Several inputs decoded side by side, given in their order.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "audio/audio_chunks.h"

namespace hark {

class ReadAhead {
  public:
    // Starts `jobs` threads, each of which takes the next input that nobody has begun. One that is
    // ahead of the reader waits once it holds a few chunks, so memory is bounded by the jobs.
    // The recordings' ids are the inputs' numbers, from 1.
    ReadAhead(std::vector<std::string> paths, const ReadOptions& options, int64_t chunk_samples,
              int jobs);
    // Ends the threads, each at its next chunk. One that waits for a pipe that nobody writes to
    // cannot be ended: after two seconds it is abandoned.
    ~ReadAhead();
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;

    // The next chunk, input by input; nullopt after the last.
    std::optional<Chunk> next();

  private:
    struct Shared;
    std::shared_ptr<Shared> shared_;
    std::vector<std::thread> threads_;
    size_t current_ = 0;
};

}  // namespace hark
