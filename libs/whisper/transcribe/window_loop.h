// The loop over a recording's windows as a state machine: which window comes next and with which
// prompt, and what a decoded window means. No model and no audio, only token ids and numbers.
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

// When a decoded window is refused, or taken for silence.
struct Thresholds {
    // nullopt: no window fails by it.
    std::optional<double> compression_ratio = 2.4;
    std::optional<double> logprob = -1.0;
    std::optional<double> no_speech = 0.6;
    int64_t max_repeats = 0;  // not the reference's, and off there
};

enum class Rejection { none, compression_ratio, logprob, repeats };

// Why a window must be decoded again at a higher temperature. (decode_with_fallback)
Rejection rejection(const DecodingResult& result, const Thresholds& thresholds);
// Whether the window holds no speech and gives no segments.
bool is_silence(const DecodingResult& result, const Thresholds& thresholds);

// A part of a window's tokens that is one segment. Times are in steps of 0.02 s from the window's
// start; end -1 means the window's end.
struct Slice {
    size_t begin = 0, end = 0;  // tokens
    int64_t start_step = 0, end_step = -1;
};

struct WindowSlices {
    std::vector<Slice> slices;
    int64_t advance = 0;  // frames to the next window
    // One timestamp stands at the end: no speech follows it in the window.
    bool single_ending = false;
};

// Cuts a window of `size` frames at its pairs of timestamps. Without a pair the window is one
// segment; an unfinished tail behind the last pair is left to the next window.
WindowSlices slice_window(std::span<const int32_t> tokens, int32_t timestamp_begin, int64_t size);

struct LoopOptions {
    std::vector<int32_t> initial_prompt;
    std::vector<int32_t> hotwords;      // stand before every window's prompt
    size_t max_prompt = 223;            // tokens: half the model's context, less one
    bool carry_initial_prompt = false;  // begin every window's prompt with it
    bool previous_text = true;          // feed the text before as the prompt
    std::vector<double> clips;          // start, end, start, end, ... in seconds; empty: everything
    Thresholds thresholds;
    std::optional<double> hallucination_silence;  // seconds; see word_seek.h
};

// What stands before a window whose text follows `text`: the hotwords, the initial prompt where it
// is carried, and the newest of the text's tokens that there is room for beside them.
std::vector<int32_t> prompt_behind(const LoopOptions& options, std::span<const int32_t> text);

// The segments of the window of `size` frames at `seek`, by its slices.
std::vector<Segment> segments_of(const DecodingResult& result, std::span<const Slice> slices,
                                 int64_t seek, int64_t size, const Tokenizer& tokenizer);

class WindowLoop {
  public:
    // `content_frames` of the recording. The clips are done in the order given; those that overlap
    // or go back are decoded again, those that end before they begin are left out.
    WindowLoop(const LoopOptions& options, const Tokenizer& tokenizer, int64_t content_frames);

    struct Window {
        int64_t seek = 0, size = 0;  // frames
        std::vector<int32_t> prompt;
    };
    // The window to decode now; nullopt at the end. The same until accept() is called.
    std::optional<Window> next();
    // Takes the window's result and moves on; returns its segments, those without text cleared of
    // text and tokens as the reference does. With words on, `add_words` gives each segment of the
    // window its words, of which the first may follow speech that ended at `last_speech` seconds;
    // the words then say where the next window begins.
    using AddWords = std::function<void(const Window&, std::vector<Segment>&, double last_speech)>;
    std::vector<Segment> accept(const DecodingResult& result, const AddWords& add_words = nullptr);

    double progress() const;  // the fraction of its clips that is done
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
    double last_speech_ = 0;           // seconds: where the last word ended
    std::vector<int32_t> all_tokens_;  // initial prompt, then every segment's
    size_t prompt_begin_ = 0;          // tokens before it are never fed again
    std::string last_text_;            // of the newest segment with text
    int64_t same_segments_ = 0;        // in a row that are the same text
};

}  // namespace hark::whisper
