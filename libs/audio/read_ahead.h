// Decodes several inputs at once and returns their chunks in order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audio/audio_chunks.h"

namespace hark {

// Samples that may wait in memory if one input after the other is long: 4 GB, or an eighth of what
// a smaller machine has left.
int64_t affordable_samples_ahead();

class ReadAhead {
  public:
    // Starts up to `jobs` threads. Each decodes a part of an input that another has begun, the
    // oldest first (Helpers), else the next input that no other has begun, and waits if that
    // holds two minutes that are not read yet, or all inputs hold two minutes per job: short ones
    // do not fill the memory. While next() waits for its input, or if all inputs hold less than it
    // takes in ten seconds, any may hold more, `most_ahead` samples in all: a stage that is faster
    // than one thread gets the work of several even if all inputs are long and none has parts. The
    // recordings' ids are the inputs' numbers, from 1.
    ReadAhead(std::vector<std::string> paths, const ReadOptions& options, int64_t chunk_samples,
              int jobs, int64_t most_ahead);
    // Ends each thread at its next chunk. A thread that waits for a silent pipe cannot be ended: it
    // is abandoned after two seconds.
    ~ReadAhead();
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;

    // Returns the next chunk, input by input; nullopt after the last.
    std::optional<Chunk> next();

  private:
    struct Shared;
    std::shared_ptr<Shared> shared_;
};

}  // namespace hark
