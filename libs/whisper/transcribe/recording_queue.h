// The recordings of a mel stream, read by a thread of their own while the models are at work.
#pragma once

#include <string>

#include "whisper/transcribe/mel_recording.h"
#include "whisper/transcribe/reader_queue.h"

namespace hark::whisper {

// A recording whose last document has come.
struct Arrived {
    std::string source, channel, error;
    MelRecording mel;
};

// Recordings in the order in which they end.
class RecordingFeed : public Feed<Arrived> {
  public:
    // Begins to read `fd`, called `name` in errors. It stops while `most` recordings, or 256 MB
    // of them, wait to be taken.
    RecordingFeed(int fd, std::string name, int64_t n_mels, size_t most);
};

// The chunks of a live stream as they come.
class LiveFeed : public Feed<Chunk> {
  public:
    // Begins to read `fd`, called `name` in errors. It stops while two minutes of sound in chunks
    // of a second, or one chunk larger than that, wait to be taken.
    LiveFeed(int fd, std::string name);
};

}  // namespace hark::whisper
