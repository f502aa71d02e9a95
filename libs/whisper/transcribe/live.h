// Live transcription as a state machine: which words of what was heard again and again are certain,
// which make a final segment, and where the sound may be cut. No model and no audio, only words and
// seconds.
// Sources: local agreement, Liu et al. 2020, "Low-latency sequence-to-sequence speech recognition
// and translation by partial hypothesis selection"; with Whisper, Machacek et al. 2023, "Turning
// Whisper into real-time transcription system".
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "whisper/transcribe/window_loop.h"

namespace hark::whisper {

inline constexpr double kLiveStep = 0.5;   // seconds of sound between two that must agree
inline constexpr double kLiveQuiet = 0.3;  // seconds that a word is not cut off before

// A word of what is heard, with its time in the recording.
struct LiveWord {
    Word word;
    bool ends_segment = false;  // the model ends a segment behind it and begins another
};

// What is heard of the sound from its begin to `end` seconds of the recording.
struct Hearing {
    std::vector<LiveWord> words;
    double end = 0;
    // The last stretch of the sound, of kLiveQuiet at least, that is without speech as far as its
    // level tells: empty where there is none.
    double quiet_begin = 0, quiet_end = 0;
};

class LiveText {
  public:
    // Takes what is heard behind begin(). Words that the hearing before had in the same place are
    // agreed from now on.
    void hear(Hearing heard);
    // Whether a hearing of kLiveStep less could agree with the last one.
    bool in_doubt() const;
    // Takes such a hearing: what it has in common with the last one is agreed.
    void confirm(std::vector<LiveWord> words);
    // The last hearing is final as it is, and the next sound begins behind its words: nothing else
    // was certain for as long as can be heard at once, or the sound ends.
    void finish();

    // The final segments since the last call: sentences, or what stands before a pause, or the
    // agreed words where neither comes. Their times never run back.
    std::vector<LiveSegment> take_finals();
    // nullopt where all that is heard is final.
    std::optional<LivePartial> partial() const;

    // Where the sound to hear begins, in seconds. It moves on behind final segments, at gaps if
    // there are some, and with silence.
    double begin() const { return begin_; }
    // The final words before begin() since the last call.
    std::string take_left();

  private:
    const LiveWord* word(size_t i) const;  // of said_, then newest_; null behind them
    void agree(size_t words);              // the first of newest_
    size_t finished() const;
    void give(size_t end);
    void cut();
    void leave(size_t words, double at);

    std::vector<LiveWord> said_;    // agreed, in the sound behind begin_
    size_t given_ = 0;              // of those: final
    std::vector<LiveWord> newest_;  // what was heard behind them last
    double begin_ = 0, end_ = 0;    // of the sound heard last
    double quiet_begin_ = 0, quiet_end_ = 0;
    double last_end_ = 0;  // of the last final word
    std::vector<LiveSegment> finals_;
    std::string left_;
};

// How many of the words in `heard` stand for all of `said`: those with the fewest edits. Where
// several numbers are as good: one that ends with the same word, if any does; of these the last
// that begins before `said` ends, else the first.
size_t words_that_say(std::span<const LiveWord> said, std::span<const LiveWord> heard);

// How many words two hearings have in common from the first on, but for case and punctuation. The
// last word of each may have been cut off: it counts where it begins before `quiet`, and the newer
// one's must then be the same to the byte.
size_t agreeing(std::span<const LiveWord> before, std::span<const LiveWord> newer, double quiet);

}  // namespace hark::whisper
