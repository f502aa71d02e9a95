// Live transcription as a state machine on words and times, without a model: which words of
// repeated hypotheses are committed, which form a final segment, and where the sound is cut. Local
// agreement (Liu et al. 2020, Machacek et al. 2023): docs/formats.md has the sources.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "whisper/transcribe/window_loop.h"

namespace hark::whisper {

inline constexpr double kLiveStep = 0.5;   // seconds of sound between hypotheses that must agree
inline constexpr double kLiveQuiet = 0.3;  // seconds of quiet after which a word is complete

// A word of a hypothesis, with its time in the recording.
struct LiveWord {
    Word word;
    bool ends_segment = false;  // the model ends a segment after it and begins another
};

// The model's text of the sound from LiveText::begin() to `end` seconds of the recording.
struct Hypothesis {
    std::vector<LiveWord> words;
    double end = 0;
    // The last run of at least kLiveQuiet whose level is that of silence; empty if there is no such
    // run.
    double quiet_begin = 0, quiet_end = 0;
};

class LiveText {
  public:
    // Takes the hypothesis of the sound after begin(). Words that also start the previous
    // hypothesis are committed.
    void update(Hypothesis hypothesis);
    // Whether confirm() with a hypothesis of kLiveStep less sound could commit words.
    bool can_confirm() const;
    // Takes such a hypothesis: the words that it shares with the last one are committed.
    void confirm(std::vector<LiveWord> words);
    // Makes all words of the last hypothesis final; the sound continues after them. For the end of
    // the sound, and for a full window in which nothing else is certain.
    void finish();

    // The final segments since the last call. A segment ends with a sentence or before a pause, or
    // without either when the committed words get long. Times never decrease.
    std::vector<LiveSegment> take_finals();
    // The words that are not final; nullopt if all are.
    std::optional<LivePartial> partial() const;

    // The start of the sound to transcribe, in seconds. It moves past final segments, to gaps if
    // possible, and past silence.
    double begin() const { return begin_; }
    // The final words before begin() since the last call.
    std::string take_dropped_text();

  private:
    const LiveWord* word(size_t i) const;  // of committed_, then tentative_; null after them
    void commit(size_t words);             // the first of tentative_
    size_t complete() const;
    void finalize(size_t end);
    void cut();
    void drop(size_t words, double at);

    std::vector<LiveWord> committed_;  // after begin_
    size_t final_ = 0;                 // number of committed_ that are final
    std::vector<LiveWord> tentative_;  // words of the last hypothesis after committed_
    double begin_ = 0, end_ = 0;       // of the last hypothesis
    double quiet_begin_ = 0, quiet_end_ = 0;
    double last_end_ = 0;  // of the last final word
    std::vector<LiveSegment> finals_;
    std::string dropped_text_;
};

// The number of first words of `hypothesis` that correspond to all of `committed`: the one with the
// fewest edits. Ties: numbers whose last word equals the last committed one; of these the last
// whose word begins before `committed` ends, else the first.
size_t matched_prefix(std::span<const LiveWord> committed, std::span<const LiveWord> hypothesis);

// The number of first words that two hypotheses share, ignoring case and punctuation. A last word
// may have been cut off: it counts only if it begins before `quiet` seconds, and for the newer
// hypothesis only if all bytes are equal.
size_t common_prefix(std::span<const LiveWord> before, std::span<const LiveWord> newer,
                     double quiet);

}  // namespace hark::whisper
