// One recording on its way from log-mel to segments: which windows can be decoded now, and what
// their results come to. No model: a scheduler (transcribe.h) decodes windows of several
// recordings side by side.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "speech/regions.h"
#include "whisper/output/formats.h"
#include "whisper/transcribe/mel_recording.h"
#include "whisper/transcribe/window_loop.h"
#include "whisper/transcribe/windows.h"

namespace hark::whisper {

// How a recording is gone through.
struct Route {
    LoopOptions loop;
    // The recording holds only speech, laid end to end; the map leads back. What no segment covers
    // is decoded once more on its own, and so is each region under a segment that spans several;
    // what says more is taken.
    std::optional<TimeMap> speech;
    // Windows decoded side by side, each on its own; none: one loop over everything.
    std::optional<std::vector<FrameRange>> windows;
};

class Transcription {
  public:
    Transcription(RecordingInfo info, std::string error, MelRecording mel, Route route,
                  const Tokenizer& tokenizer);

    // A window to decode.
    struct Work {
        size_t lane = 0;
        int64_t seek = 0, size = 0;  // frames
        std::vector<int32_t> prompt;
    };
    // A window that may be decoded now; nullopt where all that are known have been given out.
    std::optional<Work> next();
    // Takes the result of a window given out, the last one at any temperature; `add_words` where
    // words are asked for.
    void accept(const Work& work, const DecodingResult& result, const std::string& language,
                const WindowLoop::AddWords& add_words);

    // The segments that are certain, in order, with the recording's own times; each is given once,
    // those without text are not.
    std::vector<Segment> take_segments();
    // Whether every window has been decoded.
    bool done() const;
    // The text of all windows, once done() and taken.
    std::string text() const;
    double progress() const;  // fraction of the recording that is decoded

    int64_t content_frames() const { return content_frames_; }
    const MelRecording& mel() const { return mel_; }  // empty once done()

    RecordingInfo info;
    std::string error;  // what broke the recording, if anything did

  private:
    // A segment that may leave out speech, and what its regions come to on their own.
    struct Doubt {
        Segment segment;
        std::vector<Segment> instead;
        int waiting = 0;  // lanes that may still add to it
    };
    // Segments that are given out together.
    struct Part {
        std::vector<Segment> segments;
        std::vector<Doubt> doubts;
        int waiting = 0;  // lanes that may still add to it
    };
    // One loop over windows, each of which waits for the one before.
    struct Lane {
        WindowLoop loop;
        std::optional<size_t> part;   // where its segments go; none: a new one each window
        bool again = false;           // of speech that was left out
        std::optional<size_t> doubt;  // of the part's, that it may settle
        bool busy = false, done = false;
    };

    void add_lane(FrameRange range, size_t part, bool again);
    void end_lane(Lane& lane);
    void decode_again(size_t part, const Work& work, FrameRange range,
                      std::span<const Segment> segments);
    void doubt_joined(size_t part, std::vector<Segment>& segments);
    static void settle(Part& part, Doubt& doubt);
    void to_recording(Segment& segment) const;

    MelRecording mel_;
    int64_t content_frames_;
    Route route_;
    const Tokenizer& tokenizer_;
    std::deque<Lane> lanes_;
    std::deque<Part> parts_;
    size_t first_lane_ = 0, first_part_ = 0;  // those before it are done and given out
    std::string text_;
};

}  // namespace hark::whisper
