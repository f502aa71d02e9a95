// Turns the chunks of audio recordings into chunks of their log-mel spectra.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "audio/audio_chunks.h"
#include "audio/log_mel.h"
#include "formats/recordings.h"

namespace hark {

struct MelOptions {
    std::string mels = "80";
    bool normalize = false;  // one document per recording, as in openai-whisper
    ChunkOptions chunk;

    void flags(Flags& flags);
};

// Takes the chunks of several recordings in any order. An audio document's metadata is passed on
// with every mel chunk that overlaps its samples, its other tensors with the first of them. Regions
// of speech of several audio documents in one mel chunk become one tensor.
class MelStream {
  public:
    using Emit = std::function<void(Chunk)>;

    // Computes on one CPU thread, or on the device and threads of `ctx`, which must outlive this.
    explicit MelStream(const MelOptions& options, Context* ctx = nullptr);

    // Takes an audio chunk and emits the mel chunks that it completes. A recording's last one has
    // `content_frames`, and the `error` of the last audio chunk.
    void push(const Chunk& audio, const Emit& emit);
    // Ends every recording that is still open with an error.
    void abandon(const std::string& error, const Emit& emit);

  private:
    // The rest of an audio document, and the frames that overlap its samples.
    struct Extra {
        int64_t begin, end;
        Document document;
        std::optional<std::vector<Region>> speech;
    };
    struct Recording {
        explicit Recording(std::shared_ptr<const MelFrames> compute)
            : log_mel(std::move(compute)) {}
        LogMel log_mel;
        std::vector<float> frames;  // complete; the first `taken` values have been emitted
        size_t taken = 0;
        int64_t emitted = 0;  // frames
        Chunk like;           // its names
        std::deque<Extra> extras;
    };

    void finish(Recording& recording, const std::string& error, bool lacks_end, const Emit& emit);
    int64_t complete(const Recording& recording) const;  // frames not yet emitted
    Chunk take(Recording& recording, int64_t frames, bool last);

    std::shared_ptr<const MelFrames> compute_;
    int n_mels_;
    bool normalize_;
    int64_t chunk_frames_;
    std::map<std::string, Recording> open_;
};

}  // namespace hark
