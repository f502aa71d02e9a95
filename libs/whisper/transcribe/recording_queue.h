// Reads the recordings of a mel stream on a thread of its own while the models compute.
#pragma once

#include <string>

#include "core/files/reader_queue.h"
#include "whisper/transcribe/mel_recording.h"

namespace hark::whisper {

// A recording whose last document has been read.
struct ReceivedRecording {
    std::string source, channel, error;
    bool lacks_end;  // the error is that alone
    MelRecording mel;
};

// Recordings in the order of their last documents.
class RecordingQueue : public ReaderQueue<ReceivedRecording> {
  public:
    // Reads `fd`, called `name` in errors. Pauses while the queue has `most` recordings or 256 MB.
    // Finds the speech of each with `speech_threads` threads, if any.
    RecordingQueue(int fd, std::string name, int64_t n_mels, size_t most, int speech_threads = 0);
};

// The chunks of a live stream.
class LiveChunkQueue : public ReaderQueue<Chunk> {
  public:
    // Reads `fd`, called `name` in errors. Pauses while the queue has two minutes of sound in
    // chunks of a second, or one larger chunk.
    LiveChunkQueue(int fd, std::string name);
};

}  // namespace hark::whisper
