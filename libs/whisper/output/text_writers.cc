// Text, Markdown and lyrics.
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "text/utf8.h"
#include "whisper/output/format_writers.h"

namespace hark::whisper {
namespace {

// A line per segment; a blank line between recordings that have text.
class TextWriter : public WriterBase {
  public:
    TextWriter(Write write, const TextLayout& layout)
        : WriterBase(std::move(write)), layout_(layout) {}
    void begin(const RecordingInfo&) override { separate_ = any_; }
    void segment(const Segment& segment) override {
        if (line_of(segment).empty()) return;
        const std::span<const Word> words =
            segment.words ? std::span<const Word>(*segment.words) : std::span<const Word>();
        write_((separate_ ? "\n" : "") +
               text_line(segment.start, segment.end, segment.text, words, layout_) + "\n");
        any_ = true;
        separate_ = false;
    }
    void end(const std::string&, const std::string&) override {}

  private:
    TextLayout layout_;
    bool any_ = false;       // a recording has had text
    bool separate_ = false;  // the next line is the first of a recording after one with text
};

// Underlines words of low probability too, for readers who cannot distinguish the colours.
std::string with_confidence(std::span<const Word> words) {
    constexpr const char* kLow = "\033[1;4;31m";   // bold, underlined, red
    constexpr const char* kMiddle = "\033[4;33m";  // underlined, yellow
    std::string line;
    for (const Word& word : words) {
        const std::string text = one_line(word.text), bare = strip(text);
        if (bare.empty() || word.probability >= kHighProbability) {
            line += text;
            continue;
        }
        const size_t begin = text.find(bare);
        line += text.substr(0, begin) + (word.probability < kLowProbability ? kLow : kMiddle) +
                bare + "\033[0m" + text.substr(begin + bare.size());
    }
    return strip(line);
}

// A heading per recording; a paragraph, which begins with its time, per stretch without a pause.
class MarkdownWriter : public WriterBase {
  public:
    using WriterBase::WriterBase;
    void begin(const RecordingInfo& info) override {
        std::string name = one_line(replace_invalid(info.source));
        if (info.channel != "0") name += ", channel " + one_line(info.channel);
        write_((any_ ? "\n# " : "# ") + escaped(name) + "\n");
        any_ = true;
    }
    void segment(const Segment& segment) override {
        if (line_of(segment).empty()) return;
        if (!paragraph_.empty() && ends_paragraph(segment)) put();
        if (paragraph_.empty()) start_ = segment.start;
        paragraph_ += one_line(segment.text);
        end_ = segment.end;
    }
    void end(const std::string&, const std::string&) override {
        if (!paragraph_.empty()) put();
    }

  private:
    static constexpr double kPause = 2;            // seconds
    static constexpr size_t kLongParagraph = 600;  // bytes

    bool ends_paragraph(const Segment& next) const {
        const bool sentence_ends =
            std::string_view(".?!\"").find(paragraph_.back()) != std::string_view::npos ||
            paragraph_.ends_with("。");
        return next.start - end_ >= kPause ||
               (paragraph_.size() >= kLongParagraph && sentence_ends);
    }

    void put() {
        const long long seconds = std::llround(std::floor(start_));
        char time[48];
        if (seconds >= 3600)
            std::snprintf(time, sizeof time, "%lld:%02lld:%02lld", seconds / 3600,
                          seconds / 60 % 60, seconds % 60);
        else
            std::snprintf(time, sizeof time, "%lld:%02lld", seconds / 60, seconds % 60);
        write_(concat("\n**", time, "** ", escaped(strip(paragraph_)), "\n"));
        paragraph_.clear();
    }

    // CommonMark: a backslash before ASCII punctuation makes it text.
    static std::string escaped(const std::string& text) {
        std::string result;
        for (const char byte : text) {
            if (std::string_view("\\`*_[]<>&~$#|").find(byte) != std::string_view::npos)
                result += '\\';
            result += byte;
        }
        return result;
    }

    bool any_ = false;
    std::string paragraph_;
    double start_ = 0, end_ = 0;  // seconds, of the paragraph
};

// A line per segment after its time; with words, each after its own time (the enhanced form).
class LyricsWriter : public OneRecordingWriter {
  public:
    using OneRecordingWriter::OneRecordingWriter;
    void begin(const RecordingInfo&) override {}
    void segment(const Segment& segment) override {
        const std::string line = line_of(segment);
        if (line.empty()) return;
        if (!segment.words || segment.words->empty())
            return write_("[" + time(segment.start) + "]" + line + "\n");
        const std::vector<Word>& words = *segment.words;
        std::string text;
        for (const Word& word : words) {
            const std::string one = one_line(word.text);
            const bool space = one.starts_with(' ') && !text.empty();
            text += (space ? " <" : "<") + time(word.start) + ">" + strip(one);
        }
        write_("[" + time(words.front().start) + "]" + text + " <" + time(words.back().end) +
               ">\n");
    }

  private:
    // Minutes have two digits or more: the format has no hours.
    static std::string time(double seconds) {
        const long long hundredths = std::llround(seconds * 100);
        char text[48];
        std::snprintf(text, sizeof text, "%02lld:%02lld.%02lld", hundredths / 6000,
                      hundredths / 100 % 60, hundredths % 100);
        return text;
    }
};

}  // namespace

std::string text_line(double start, double end, const std::string& text,
                      std::span<const Word> words, const TextLayout& layout) {
    const std::string times = layout.times ? "[" + format_time(start, false, '.') + " --> " +
                                                 format_time(end, false, '.') + "] "
                                           : "";
    return times +
           (layout.confidence && !words.empty() ? with_confidence(words) : strip(one_line(text)));
}

WriterPointer make_text_writer(TranscriptWriter::Write write, const TextLayout& layout) {
    return std::make_unique<TextWriter>(std::move(write), layout);
}

WriterPointer make_markdown_writer(TranscriptWriter::Write write) {
    return std::make_unique<MarkdownWriter>(std::move(write));
}

WriterPointer make_lyrics_writer(TranscriptWriter::Write write) {
    return std::make_unique<LyricsWriter>(std::move(write));
}

}  // namespace hark::whisper
