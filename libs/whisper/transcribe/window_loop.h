// The loop over a recording's windows as a state machine: the next window and its prompt, and the
// segments of a decoded window. No model and no audio, only token ids and numbers.
// Source: openai/whisper transcribe.py.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "whisper/model/tokenizer.h"
#include "whisper/output/segment.h"
#include "whisper/transcribe/decoding_result.h"

namespace hark::whisper {

// Text sampled above this temperature is no prompt for the next window (transcribe.py).
constexpr double kPromptResetTemperature = 0.5;

// When a decoded window is rejected, or counts as silence.
struct Thresholds {
    // nullopt: the test is off.
    std::optional<double> compression_ratio = 2.4;
    std::optional<double> logprob = -1.0;
    std::optional<double> no_speech = 0.6;
    int64_t max_repeats = 0;  // not in the reference; 0: off
};

enum class Rejection { none, compression_ratio, logprob, repeats };

// Why a window must be decoded again at a higher temperature. (decode_with_fallback)
Rejection rejection(const DecodingResult& result, const Thresholds& thresholds);
// Whether the window is silence and has no segments.
bool is_silence(const DecodingResult& result, const Thresholds& thresholds);

// The tokens of one segment of a window. Times are in steps of 0.02 s from the window's start; an
// end of -1 is the window's end.
struct Slice {
    size_t begin = 0, end = 0;  // tokens
    int64_t start_step = 0, end_step = -1;
};

struct WindowSlices {
    std::vector<Slice> slices;
    int64_t advance = 0;  // frames to the next window
    // The tokens end with a single timestamp: no speech follows it in the window.
    bool single_ending = false;
};

// Cuts a window of `size` frames at its pairs of timestamps. Without a pair the window is one
// segment; the next window decodes an unfinished tail after the last pair.
WindowSlices slice_window(std::span<const int32_t> tokens, int32_t timestamp_begin, int64_t size);

struct LoopOptions {
    std::vector<int32_t> initial_prompt;
    std::vector<int32_t> hotwords;      // before each window's prompt
    size_t max_prompt = 223;            // tokens: half the model's context, less one
    bool carry_initial_prompt = false;  // begin each window's prompt with it
    bool previous_text = true;          // prompt with the previous text
    std::vector<double> clips;          // start, end, start, end, ... in seconds; empty: all
    Thresholds thresholds;
    std::optional<double> hallucination_silence;  // seconds; see word_seek.h
};

// The prompt of a window whose previous text is `text`: the hotwords, the initial prompt if it is
// carried, and as many of the text's last tokens as fit.
std::vector<int32_t> prompt_after(const LoopOptions& options, std::span<const int32_t> text);

// The segments of the window of `size` frames at `seek`, one per slice.
std::vector<Segment> segments_of(const DecodingResult& result, std::span<const Slice> slices,
                                 int64_t seek, int64_t size, const Tokenizer& tokenizer);

class WindowLoop {
  public:
    // `content_frames` is the recording's. Clips are decoded in the given order, overlaps twice;
    // clips that end before they begin are skipped.
    WindowLoop(const LoopOptions& options, const Tokenizer& tokenizer, int64_t content_frames);

    struct Window {
        int64_t seek = 0, size = 0;  // frames
        std::vector<int32_t> prompt;
    };
    // The window to decode now; nullopt at the end. Unchanged until accept() is called.
    std::optional<Window> next();
    // Takes the window's result, advances and returns its segments; blank ones lose text and
    // tokens, as in the reference. `add_words`, if given, sets the segments' words, which then
    // decide where the next window begins; speech before the window ended at `last_speech` seconds.
    using AddWords = std::function<void(const Window&, std::vector<Segment>&, double last_speech)>;
    std::vector<Segment> accept(const DecodingResult& result, const AddWords& add_words = nullptr);

    double progress() const;  // fraction of the clips that is decoded
    // The text of all segments so far.
    std::string text() const;

  private:
    std::vector<int32_t> prompt() const;
    bool repeats_itself(const DecodingResult& result, std::span<const Segment> segments);

    LoopOptions options_;
    const Tokenizer& tokenizer_;
    std::vector<std::pair<int64_t, int64_t>> clips_;  // frames
    size_t clip_ = 0;
    int64_t content_frames_;
    int64_t seek_ = 0;
    double last_speech_ = 0;           // end of the last word, seconds
    std::vector<int32_t> all_tokens_;  // of the initial prompt, then of all segments
    size_t prompt_begin_ = 0;          // tokens before it are in no later prompt
    std::string last_text_;            // of the newest segment with text
    int64_t same_segments_ = 0;        // consecutive segments with that text
};

}  // namespace hark::whisper
