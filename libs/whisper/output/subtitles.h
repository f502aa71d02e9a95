// Subtitles out of timed words: which words share a line, and which lines a cue.
// Source: openai/whisper utils.py, SubtitlesWriter.iterate_result.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "whisper/output/segment.h"

namespace hark::whisper {

// 0 stands for no limit. With a width and a count, cues may join and cut segments, and end at
// pauses of more than 3 s; else every segment begins a cue.
struct SubtitleLayout {
    int64_t max_line_width = 0;      // columns: a word that is wider has a line of its own
    int64_t max_line_count = 0;      // lines of a cue
    int64_t max_words_per_line = 0;  // words of a segment that a cue takes
    bool highlight_words = false;    // srt and vtt: a cue for each word, which is underlined
};

struct CueWord {
    std::string text;           // with the space before it, but at a line's beginning
    double start = 0, end = 0;  // seconds
    bool new_line = false;      // the cue breaks before it
};

// What is shown at once. A segment that has no words is one word.
struct Cue {
    std::vector<CueWord> words;

    double start() const { return words.front().start; }
    double end() const { return words.back().end; }
};

// Takes segments as they come and hands out the cues that are whole. Words between which a grapheme
// would be cut (an emoji of several code points, a mark) are one word.
class CueMaker {
  public:
    CueMaker(const SubtitleLayout& layout, std::function<void(const Cue&)> emit);

    void add(const Segment& segment);
    // The recording's end, or that of a cue.
    void finish();

  private:
    void place(CueWord word);

    SubtitleLayout layout_;
    bool keeps_segments_;
    std::function<void(const Cue&)> emit_;
    Cue cue_;
    bool line_open_ = false;                   // the last line has text
    int64_t line_width_ = 0, line_count_ = 1;  // of the last line; of the cue
    std::optional<double> last_start_;         // of the word before, in seconds
};

}  // namespace hark::whisper
