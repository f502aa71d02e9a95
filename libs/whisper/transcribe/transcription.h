// One recording's progress from log-mel to segments: which windows can be decoded now, and the
// segments of their results. No model: the scheduler (transcribe.h) decodes windows of several
// recordings at once.
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

// How a recording is cut into windows.
struct TranscriptionPlan {
    LoopOptions loop;
    // Given if the recording has been cut down to its speech: maps its times to the original's.
    // Speech without a segment is then decoded again, and so is each region under a segment that
    // spans several; the longer text is kept.
    std::optional<TimeMap> speech;
    // Windows decoded independently of each other; none: one sequence over all of the recording.
    std::optional<std::vector<FrameRange>> windows;
};

class Transcription {
  public:
    Transcription(RecordingInfo info, std::string error, MelRecording mel, TranscriptionPlan plan,
                  const Tokenizer& tokenizer);

    // A window to decode.
    struct Work {
        size_t sequence = 0;
        int64_t seek = 0, size = 0;  // frames
        std::vector<int32_t> prompt;
    };
    // A window that can be decoded now; nullopt if the next ones depend on windows in progress, or
    // none is left.
    std::optional<Work> next();
    // Takes the result of a window from next(), after its last temperature. `add_words` is null
    // without word timestamps.
    void accept(const Work& work, const DecodingResult& result, const std::string& language,
                const WindowLoop::AddWords& add_words);

    // The final segments since the last call, in order, in the original recording's times; without
    // those that have no text.
    std::vector<Segment> take_segments();
    // Whether every window has been decoded.
    bool done() const;
    // The text of all windows, after done() and take_segments().
    std::string text() const;
    double progress() const;  // fraction of the recording that is decoded

    int64_t content_frames() const { return content_frames_; }
    const MelRecording& mel() const { return mel_; }  // empty once done()

    RecordingInfo info;
    std::string error;  // why the recording is incomplete, or ""

  private:
    // A segment over several speech regions, which may leave out speech, and the segments of these
    // regions decoded separately.
    struct JoinedSegment {
        Segment segment;
        std::vector<Segment> separate;
        int pending = 0;  // sequences that have not ended
    };
    // Segments that become final together.
    struct SegmentGroup {
        std::vector<Segment> segments;
        std::vector<JoinedSegment> joined;
        int pending = 0;  // sequences that have not ended
    };
    // Windows decoded one after another.
    struct WindowSequence {
        WindowLoop loop;
        std::optional<size_t> group;   // of its segments; none: a new one per window
        bool redecodes = false;        // speech that was decoded before
        std::optional<size_t> joined;  // index into the group's `joined`
        bool busy = false, done = false;
    };

    void add_sequence(FrameRange range, size_t group, bool redecodes);
    void end_sequence(WindowSequence& sequence);
    void redecode_uncovered(size_t group, const Work& work, FrameRange range,
                            std::span<const Segment> segments);
    void redecode_joined(size_t group, std::vector<Segment>& segments);
    static void take_longer_text(SegmentGroup& group, JoinedSegment& joined);
    void to_recording(Segment& segment) const;

    MelRecording mel_;
    int64_t content_frames_;
    TranscriptionPlan plan_;
    const Tokenizer& tokenizer_;
    std::deque<WindowSequence> sequences_;
    std::deque<SegmentGroup> groups_;
    size_t first_sequence_ = 0, first_group_ = 0;  // not done; not taken by take_segments()
    std::string text_;
};

}  // namespace hark::whisper
