#include "whisper/transcribe/recording_queue.h"

#include <map>

namespace hark::whisper {
namespace {

constexpr size_t kMostBytes = size_t{256} << 20;
constexpr size_t kMostLiveChunks = 120, kMostLiveBytes = size_t{8} << 20;
constexpr const char* kHint = "pipe it through mel first";

using Recordings = ReaderQueue<ReceivedRecording>;

void read_recordings(ByteReader& in, int64_t n_mels, const Recordings::Put& put) {
    RecordingReader chunks(in, "mel", kHint);
    std::map<std::string, MelRecording> open;  // not ended, by id
    while (const std::optional<Chunk> chunk = chunks.next()) {
        MelRecording& recording = open[chunk->recording];
        recording.add(*chunk, n_mels);
        if (!chunk->last) continue;
        const size_t bytes = recording.bytes();
        ReceivedRecording received{chunk->source, chunk->channel, chunk->error, chunk->lacks_end,
                                   std::move(recording)};
        open.erase(chunk->recording);
        if (!put(std::move(received), bytes)) return;
    }
}

// Takes each recording that `in` has to `put` with its speech, while the next one is read.
void find_speech(ByteReader& in, int64_t n_mels, int threads, const Recordings::Put& put) {
    Recordings read(
        [&](const Recordings::Put& found, const Interrupt&) { read_recordings(in, n_mels, found); },
        2, kMostBytes / 4);
    while (std::optional<ReceivedRecording> one = read.next(true)) {
        if (one->mel.content_frames() > 0) one->mel.find_speech(threads);
        const size_t bytes = one->mel.bytes();
        if (!put(std::move(*one), bytes)) return;
    }
    read.check();
}

}  // namespace

RecordingQueue::RecordingQueue(int fd, std::string name, int64_t n_mels, size_t most,
                               int speech_threads)
    : ReaderQueue(
          [=](const Put& put, const Interrupt& interrupt) {
              ByteReader in(fd, name, &interrupt);
              if (speech_threads > 0)
                  find_speech(in, n_mels, speech_threads, put);
              else
                  read_recordings(in, n_mels, put);
          },
          most, kMostBytes) {}

LiveChunkQueue::LiveChunkQueue(int fd, std::string name)
    : ReaderQueue(
          [=](const Put& put, const Interrupt& interrupt) {
              ByteReader in(fd, name, &interrupt);
              RecordingReader chunks(in, "mel", kHint);
              while (std::optional<Chunk> chunk = chunks.next()) {
                  const size_t bytes = chunk->document.data->size();
                  if (!put(std::move(*chunk), bytes)) return;
              }
          },
          kMostLiveChunks, kMostLiveBytes) {}

}  // namespace hark::whisper
