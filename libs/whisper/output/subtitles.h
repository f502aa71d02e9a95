// Lays out timed words as subtitles: lines, and cues of lines.
// Source: openai/whisper utils.py, SubtitlesWriter.iterate_result.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "whisper/output/segment.h"

namespace hark::whisper {

// 0: no limit. With a width and a count, cues may join and cut segments, and end at
// pauses above 3 s; else each segment begins a cue.
struct SubtitleLayout {
    int64_t max_line_width = 0;      // columns; a wider word has its own line
    int64_t max_line_count = 0;      // lines of a cue
    int64_t max_words_per_line = 0;  // words of a segment per cue
    bool highlight_words = false;    // srt and vtt: a cue for each word, which is underlined
};

struct CueWord {
    std::string text;           // with its leading space, except at a line's start
    double start = 0, end = 0;  // seconds
    bool new_line = false;      // the cue breaks before it
};

// Lines shown at once. A segment without words counts as one word.
struct Cue {
    std::vector<CueWord> words;

    double start() const { return words.front().start; }
    double end() const { return words.back().end; }
};

// Takes segments in order and returns complete cues. Words that share a grapheme (an emoji of
// several code points, a mark) are joined to one.
class CueMaker {
  public:
    CueMaker(const SubtitleLayout& layout, std::function<void(const Cue&)> emit);

    void add(const Segment& segment);
    // Ends the current cue, also at the recording's end.
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
