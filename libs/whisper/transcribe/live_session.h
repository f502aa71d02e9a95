// Live transcription of one recording after another: hears what has come of the sound again and
// again, and gives out what is certain.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "whisper/output/output.h"
#include "whisper/transcribe/decoding.h"
#include "whisper/transcribe/live.h"
#include "whisper/transcribe/recording_queue.h"
#include "whisper/transcribe/transcribe_options.h"

namespace hark::whisper {

// Throws UsageError where the options ask for what live transcription cannot do.
void check_live(const TranscribeOptions& options, const OutputOptions& output);

class LiveSession {
  public:
    // What comes out, recording by recording.
    struct Listener {
        std::function<void(const RecordingInfo&, const LivePartial&)> partial;  // one that is new
        std::function<void(const RecordingInfo&, const LiveSegment&)> final;
        std::function<void(const RecordingInfo&, const std::string& error)> end;
        std::function<void(const std::string&)> warn;  // of chunks so long that words come late
    };

    // Holds references: context, model and tokenizer must outlive it. Throws Error where the model
    // cannot do what the options ask for.
    LiveSession(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                const TranscribeOptions& options, Listener listener);

    // Takes the next chunk of the recording, or the first one of the next. Throws Error naming its
    // document where it belongs to another recording than the one that has not ended, or has been
    // through vad, whose regions come too late.
    void add(const Chunk& chunk);
    // Whether another chunk may be added before hear(): the recording goes on, and there is not
    // more of it than can be heard at once.
    bool has_room() const;
    // Hears all that has been added; behind a recording's last chunk all of it is final.
    void hear();
    // Hears a little less of it, where that can make words certain.
    void confirm();
    // Ends the recording where it stands, if one has begun.
    void finish();

  private:
    // A recording that has not ended.
    struct Recording {
        RecordingInfo info;
        std::string id, error;
        bool last = false;  // its last chunk has come
        MelRecording mel;
        LiveText text;
        int64_t heard = 0;          // frames
        bool certain = false;       // of the language
        std::vector<int32_t> said;  // tokens of the prompt
        std::optional<LivePartial> shown;

        int64_t begin() const;  // frame: the sound to hear
        int64_t end() const { return mel.content_frames(); }
    };

    // The words heard up to this frame; nullopt where they are refused. Where it must come to
    // something, all temperatures are tried and the last is taken.
    std::optional<std::vector<LiveWord>> words_until(int64_t end, bool must);
    std::optional<DecodingResult> decode(bool must);
    DecodingResult decode_at(size_t attempt);
    std::vector<LiveWord> words_of(const DecodingResult& result, int64_t size);
    void warn_of(const Chunk& chunk, int64_t frames);
    void hear_until(int64_t end, bool must);
    void give_out();

    const Tokenizer& tokenizer_;
    TranscribeOptions options_;
    Listener listener_;
    WindowDecoder decoder_;
    LoopOptions loop_options_;
    Arena memory_;
    Tensor window_;  // (1, 3000, n_mels)
    std::optional<Recording> now_;
    bool warned_ = false;
};

// Transcribes what comes until the feed is over. Throws what broke the feed when all that came
// before it has been given out.
void transcribe_live(LiveFeed& feed, LiveSession& session);

}  // namespace hark::whisper
