// The recordings of a mel stream, read by a thread of their own while the models are at work.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "whisper/mel_recording.h"

namespace hark::whisper {

// A recording whose last document has come.
struct Arrived {
    std::string source, channel, error;
    MelRecording mel;
};

class RecordingFeed {
  public:
    // Begins to read `fd`, called `name` in errors. It stops while `most` recordings, or 256 MB
    // of them, wait to be taken.
    RecordingFeed(int fd, std::string name, int64_t n_mels, size_t most);
    // Does not wait for the thread, which may be waiting for the stream.
    ~RecordingFeed();
    RecordingFeed(const RecordingFeed&) = delete;
    RecordingFeed& operator=(const RecordingFeed&) = delete;

    // The recording that ended first of those not yet taken. nullopt: none has ended yet, which
    // `wait` rules out, or the stream is over().
    std::optional<Arrived> next(bool wait);
    // Whether the stream has ended, or broken, and all that came before has been taken.
    bool over() const;
    // Throws what broke the stream, if anything did.
    void check() const;

  private:
    struct Shared;
    static void read(const std::shared_ptr<Shared>& shared);
    std::shared_ptr<Shared> shared_;
};

}  // namespace hark::whisper
