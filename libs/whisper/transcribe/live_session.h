// Live transcription of one recording after another: transcribes the newest sound repeatedly and
// emits the words that are certain.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/arena.h"
#include "whisper/output/formats.h"
#include "whisper/transcribe/live.h"
#include "whisper/transcribe/mel_recording.h"
#include "whisper/transcribe/transcribe_options.h"

namespace hark {
struct Context;
}

namespace hark::whisper {

class LiveChunkQueue;
struct Model;
struct OutputOptions;
class WindowDecoder;

// Throws UsageError if live transcription does not support an option.
void check_live(const TranscribeOptions& options, const OutputOptions& output);

class LiveSession {
  public:
    // Callbacks, recording by recording.
    struct Listener {
        std::function<void(const RecordingInfo&, const LivePartial&)> partial;  // if changed
        std::function<void(const RecordingInfo&, const LiveSegment&)> final;
        std::function<void(const RecordingInfo&, const std::string& error)> end;
        std::function<void(const std::string&)> warn;  // chunks are so long that text is late
        // Before each token of a window; may throw to end what runs.
        std::function<void()> token;
    };

    // Holds references: context, model and tokenizer must outlive it. Throws Error if the model
    // does not support an option.
    LiveSession(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                const TranscribeOptions& options, Listener listener);
    ~LiveSession();

    // Takes the next chunk of the recording, or the first one of the next. Throws Error naming its
    // document if the current recording has not ended and has another id, or if the stream has
    // passed through vad, whose regions are too late.
    void add(const Chunk& chunk);
    // Whether another chunk may be added before update(): the recording continues, and its sound
    // fits in a window.
    bool has_room() const;
    // Transcribes all added sound. After a recording's last chunk all of its text is final.
    void update();
    // Transcribes slightly less sound if that can commit words.
    void confirm();
    // Ends the current recording, if any, with the sound that it has.
    void finish();

  private:
    // A recording that has not ended.
    struct Recording {
        RecordingInfo info;
        std::string id, error;
        bool last = false;  // its last chunk has been added
        MelRecording mel;
        LiveText text;
        int64_t transcribed = 0;  // frames
        bool language_is_certain = false;
        std::vector<int32_t> prompt;  // tokens of the text before begin()
        std::optional<LivePartial> shown;

        int64_t begin() const;  // first frame of the sound to transcribe
        int64_t end() const { return mel.content_frames(); }
    };

    // The words from begin() to frame `end`; nullopt if the thresholds reject them. `must`: tries
    // all temperatures and accepts the last one's words.
    std::optional<std::vector<LiveWord>> words_until(int64_t end, bool must);
    std::optional<DecodingResult> decode(bool must);
    DecodingResult decode_at(size_t attempt);
    std::vector<LiveWord> words_of(const DecodingResult& result, int64_t size);
    void warn_of(const Chunk& chunk, int64_t frames);
    void update_until(int64_t end, bool must);
    void emit_ready();

    const Tokenizer& tokenizer_;
    TranscribeOptions options_;
    Listener listener_;
    std::unique_ptr<WindowDecoder> decoder_;
    LoopOptions loop_options_;
    Arena memory_;
    Tensor window_;  // (1, 3000, n_mels)
    std::optional<Recording> now_;
    bool warned_ = false;
};

// The chunks that have come and have not been added.
struct LiveSource {
    std::function<std::optional<Chunk>()> next;  // the first one, if any
    std::function<bool()> empty;
};

// Transcribes `chunk`, and with it those of `source` that fit. Throws the Error of add() after all
// text before that chunk has become final.
void transcribe_chunks(const Chunk& chunk, const LiveSource& source, LiveSession& session);

// Transcribes chunks until the queue is over. Throws the queue's error, if any, after emitting all
// text before it.
void transcribe_live(LiveChunkQueue& queue, LiveSession& session);

}  // namespace hark::whisper
