// One recording on its way from log-mel to segments: which windows can be decoded now, and what
// their results come to. No model: a scheduler (transcribe.h) decodes windows of several
// recordings side by side.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "whisper/formats.h"
#include "whisper/mel_recording.h"
#include "whisper/window_loop.h"

namespace hark::whisper {

class Transcription {
  public:
    // `ranges`: frames of the recording that are each gone through on their own, side by side;
    // empty: one loop over everything. Throws UsageError where the loop's clips are not in order.
    Transcription(RecordingInfo info, std::string error, MelRecording mel,
                  const LoopOptions& options, const Tokenizer& tokenizer,
                  const std::vector<std::pair<int64_t, int64_t>>& ranges = {});

    // A window to decode.
    struct Work {
        size_t lane = 0;
        int64_t seek = 0, size = 0;  // frames
        std::vector<int32_t> prompt;
    };
    // A window that may be decoded now; nullopt where all that are known have been given out.
    std::optional<Work> next();
    // Takes the result of a window given out; `add_words` where words are asked for.
    void accept(const Work& work, const DecodingResult& result, const std::string& language,
                const WindowLoop::AddWords& add_words);

    // The segments that are certain, in order; each is given once, those without text are not.
    std::vector<Segment> take_segments();
    // Whether every window has been decoded; then mel() may be freed.
    bool done() const;
    // The text of all windows, once done().
    std::string text() const;
    double progress() const;  // fraction of the recording that is decoded

    int64_t content_frames() const { return content_frames_; }
    const MelRecording& mel() const { return mel_; }

    RecordingInfo info;
    std::string error;  // what broke the recording, if anything did

  private:
    // One loop over windows, each of which waits for the one before.
    struct Lane {
        WindowLoop loop;
        std::deque<Segment> segments;  // not yet taken
        bool busy = false, done = false;
    };

    MelRecording mel_;
    int64_t content_frames_;
    std::vector<Lane> lanes_;
    size_t first_ = 0;  // the first lane whose segments have not all been taken
};

}  // namespace hark::whisper
