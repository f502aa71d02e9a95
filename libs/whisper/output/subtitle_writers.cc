// srt, vtt and ass.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "whisper/output/format_writers.h"

namespace hark::whisper {
namespace {

// Formats of cues.
class CueWriter : public OneRecordingWriter {
  public:
    CueWriter(Write write, const SubtitleLayout& layout)
        : OneRecordingWriter(std::move(write)),
          maker_(layout, [this](const Cue& cue) { put(cue); }) {}
    void segment(const Segment& segment) override { maker_.add(segment); }
    void end(const std::string&, const std::string&) override { maker_.finish(); }

  protected:
    virtual void put(const Cue& cue) = 0;

  private:
    CueMaker maker_;
};

class SubtitleWriter : public CueWriter {
  public:
    SubtitleWriter(Write write, const SubtitleLayout& layout, bool vtt)
        : CueWriter(std::move(write), layout), vtt_(vtt), highlight_(layout.highlight_words) {}
    void begin(const RecordingInfo&) override {
        count_ = 0;
        if (vtt_) write_("WEBVTT\n\n");
    }

  private:
    // With highlighting, a cue per word and a cue per gap between two words.
    void put(const Cue& cue) override {
        const std::string plain = text_of(cue, cue.words.size());
        if (!highlight_) return put(cue.start(), cue.end(), plain);
        double last = cue.start();
        for (size_t i = 0; i < cue.words.size(); ++i) {
            const CueWord& word = cue.words[i];
            if (std::llround(word.start * 1000) > std::llround(last * 1000))
                put(last, word.start, plain);
            put(word.start, word.end, text_of(cue, i));
            last = word.end;
        }
    }

    void put(double start, double end, const std::string& text) {
        const char mark = vtt_ ? '.' : ',';
        const std::string number = vtt_ ? "" : std::to_string(++count_) + "\n";
        write_(number + format_time(start, !vtt_, mark) + " --> " + format_time(end, !vtt_, mark) +
               "\n" + replace_all(text, "-->", "->") + "\n\n");
    }

    // The word of index `underlined` is underlined, without the space before it.
    std::string text_of(const Cue& cue, size_t underlined) const {
        std::string text;
        for (size_t i = 0; i < cue.words.size(); ++i) {
            std::string word = cue.words[i].text;
            if (cue.words[i].new_line) text += "\n";
            const std::string bare = strip(word);
            const size_t begin = bare.empty() ? word.size() : word.find(bare);
            text += word.substr(0, begin);
            word = word.substr(begin);
            // WebVTT's own characters (its section 4.2.2); SubRip has no way to write them.
            if (vtt_) word = replace_all(replace_all(word, "&", "&amp;"), "<", "&lt;");
            text += i == underlined ? "<u>" + word + "</u>" : word;
        }
        return text;
    }

    bool vtt_, highlight_;
    int64_t count_ = 0;  // cues of this recording
};

// Advanced SubStation Alpha. A word is in the secondary colour until it is spoken ({\\k} and its
// duration in centiseconds).
class AssWriter : public CueWriter {
  public:
    using CueWriter::CueWriter;
    void begin(const RecordingInfo&) override {
        // Encoding -1: libass takes the direction of writing from the text.
        write_(
            "[Script Info]\nScriptType: v4.00+\nWrapStyle: 0\nScaledBorderAndShadow: yes\n"
            "PlayResX: 1920\nPlayResY: 1080\n\n[V4+ Styles]\n"
            "Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, "
            "BackColour, Bold, Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, "
            "BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding\n"
            "Style: Default,Arial,64,&H00FFFFFF,&H00A0A0A0,&H00000000,&H80000000,0,0,0,0,100,100,"
            "0,0,1,3,1,2,60,60,50,-1\n\n[Events]\n"
            "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n");
    }

  private:
    void put(const Cue& cue) override {
        const bool karaoke = cue.words.size() > 1;
        int64_t at = centiseconds(cue.start());
        std::string text;
        const auto wait_until = [&](double seconds) {
            const int64_t length = std::max<int64_t>(0, centiseconds(seconds) - at);
            at += length;
            return concat("{\\k", length, "}");
        };
        for (const CueWord& word : cue.words) {
            if (word.new_line) text += "\\N";
            if (karaoke && centiseconds(word.start) > at) text += wait_until(word.start);
            if (karaoke) text += wait_until(word.end);
            text += escaped(word.text);
        }
        write_("Dialogue: 0," + time(cue.start()) + "," + time(cue.end()) + ",Default,,0,0,0,," +
               text + "\n");
    }

    static int64_t centiseconds(double seconds) { return std::llround(seconds * 100); }

    static std::string time(double seconds) {
        const long long total = centiseconds(seconds);
        char text[48];
        std::snprintf(text, sizeof text, "%lld:%02lld:%02lld.%02lld", total / 360'000,
                      total / 6'000 % 60, total / 100 % 60, total % 100);
        return text;
    }

    // Braces hold commands, and a backslash begins one: a word joiner after it keeps it text.
    static std::string escaped(std::string text) {
        text = replace_all(text, "\\", "\\\u2060");
        text = replace_all(replace_all(text, "{", "\\{"), "}", "\\}");
        return replace_all(text, "\t", " ");
    }
};

}  // namespace

WriterPointer make_subtitle_writer(TranscriptWriter::Write write, const SubtitleLayout& layout,
                                   bool vtt) {
    return std::make_unique<SubtitleWriter>(std::move(write), layout, vtt);
}

WriterPointer make_ass_writer(TranscriptWriter::Write write, const SubtitleLayout& layout) {
    return std::make_unique<AssWriter>(std::move(write), layout);
}

}  // namespace hark::whisper
