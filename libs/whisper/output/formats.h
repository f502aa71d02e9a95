// Transcripts as text, subtitles, lyrics, tables, Audacity's labels, Markdown, json, jsonl and
// html. Sources: openai/whisper utils.py, ResultWriter; csv columns: whisper.cpp examples/cli
// (--output-csv); ass: libass, version 4.00+; lrc: "enhanced" (A2); labels: Audacity's export.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "whisper/output/segment.h"
#include "whisper/output/subtitles.h"

namespace hark::whisper {

// A transcript's metadata of its recording.
struct RecordingInfo {
    std::string source;
    std::string channel = "0";
    std::string language;
    double seconds = 0;  // of the whole recording, silence too
};

// Takes a recording's segments in order and passes text to `write`, in whole lines.
class TranscriptWriter {
  public:
    using Write = std::function<void(const std::string&)>;
    virtual ~TranscriptWriter() = default;

    virtual void begin(const RecordingInfo& info) = 0;
    virtual void segment(const Segment& segment) = 0;
    // Ends the recording: its whole text, and its error if any.
    virtual void end(const std::string& text, const std::string& error) = 0;
    // Whether several recordings may follow one another in one output.
    virtual bool joins_recordings() const { return true; }
};

// Below these a word's probability is low, or medium: TextLayout::confidence marks both.
inline constexpr double kLowProbability = 0.4, kHighProbability = 0.7;

// Layout of lines of text.
struct TextLayout {
    bool times = false;       // before each line: "[00:00.000 --> 00:02.560] "
    bool confidence = false;  // mark words of low probability with a terminal's colours
};

// A line of text without a line end; `words` may be empty.
std::string text_line(double start, double end, const std::string& text,
                      std::span<const Word> words, const TextLayout& layout);

// The names of all formats, as --format takes them.
const std::vector<std::string>& transcript_formats();
// Those that --format all stands for: all but html.
std::vector<std::string> all_formats();
// The file name's ending: ".txt", ".srt", ...; of audacity ".audacity.txt".
std::string transcript_extension(const std::string& format);
// `subtitles` is the layout of srt, vtt and ass.
std::unique_ptr<TranscriptWriter> make_transcript_writer(const std::string& format,
                                                         TranscriptWriter::Write write,
                                                         const SubtitleLayout& subtitles = {},
                                                         const TextLayout& text = {});

// "01:02:03,450", or with `hours_always` false "02:03.450" below an hour.
std::string format_time(double seconds, bool hours_always, char decimal_mark);

}  // namespace hark::whisper
