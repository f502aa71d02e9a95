#include "whisper/formats.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "whisper/strings.h"
#include "whisper/transcript_json.h"

namespace hark::whisper {
namespace {

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
}

// A segment's text as one line.
std::string line_of(const Segment& segment) { return strip(one_line(segment.text)); }

int64_t milliseconds(double seconds) { return std::llround(seconds * 1000); }

Json to_json(const Segment& segment) {
    Json json;
    json["seek"] = segment.seek;
    json["start"] = rounded(segment.start);
    json["end"] = rounded(segment.end);
    json["text"] = segment.text;
    json["tokens"] = segment.tokens;
    json["avg_logprob"] = segment.avg_logprob;
    json["no_speech_prob"] = segment.no_speech_prob;
    json["compression_ratio"] = segment.compression_ratio;
    json["temperature"] = segment.temperature;
    if (segment.words) json["words"] = to_json(*segment.words);
    return json;
}

class WriterBase : public TranscriptWriter {
  public:
    explicit WriterBase(Write write) : write_(std::move(write)) {}

  protected:
    Write write_;
    RecordingInfo info_;
};

// A line per segment; a blank line between recordings that have text.
class TextWriter : public WriterBase {
  public:
    using WriterBase::WriterBase;
    void begin(const RecordingInfo&) override { separate_ = any_; }
    void segment(const Segment& segment) override {
        const std::string line = line_of(segment);
        if (line.empty()) return;
        write_((separate_ ? "\n" : "") + line + "\n");
        any_ = true;
        separate_ = false;
    }
    void end(const std::string&, const std::string&) override {}

  private:
    bool any_ = false;       // a recording has had text
    bool separate_ = false;  // the next line is the first of a recording after one with text
};

// Formats of one recording, which are no longer themselves where two are laid end to end.
class OneRecordingWriter : public WriterBase {
  public:
    using WriterBase::WriterBase;
    void end(const std::string&, const std::string&) override {}
    bool joins_recordings() const override { return false; }
};

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
    // Highlighted, the cue comes once for each word and once for each gap between two.
    void put(const Cue& cue) override {
        const std::string plain = text_of(cue, cue.words.size());
        if (!highlight_) return put(cue.start(), cue.end(), plain);
        double last = cue.start();
        for (size_t i = 0; i < cue.words.size(); ++i) {
            const CueWord& word = cue.words[i];
            if (milliseconds(word.start) > milliseconds(last)) put(last, word.start, plain);
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

    // The word of index `underlined` is, but for the space before it.
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
        // Encoding -1 leaves it to the text which way it is written (libass).
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

    // Braces hold commands, and a backslash begins one: a word joiner behind it keeps it text.
    static std::string escaped(std::string text) {
        text = replace_all(text, "\\", "\\\u2060");
        text = replace_all(replace_all(text, "{", "\\{"), "}", "\\}");
        return replace_all(text, "\t", " ");
    }
};

// A row per segment: its times and its text.
class TableWriter : public OneRecordingWriter {
  public:
    using Row = std::function<std::string(const Segment&, const std::string& text)>;
    TableWriter(Write write, std::string heading, Row row)
        : OneRecordingWriter(std::move(write)),
          heading_(std::move(heading)),
          row_(std::move(row)) {}
    void begin(const RecordingInfo&) override {
        if (!heading_.empty()) write_(heading_);
    }
    void segment(const Segment& segment) override {
        const std::string text = line_of(segment);
        if (!text.empty()) write_(row_(segment, text) + "\n");
    }

  private:
    std::string heading_;
    Row row_;
};

std::string tsv_row(const Segment& segment, const std::string& text) {
    return concat(milliseconds(segment.start), "\t", milliseconds(segment.end), "\t",
                  replace_all(text, "\t", " "));
}

std::string csv_row(const Segment& segment, const std::string& text) {
    return concat(milliseconds(segment.start), ",", milliseconds(segment.end), ",\"",
                  replace_all(text, "\"", "\"\""), "\"");
}

std::string audacity_row(const Segment& segment, const std::string& text) {
    char times[64];
    std::snprintf(times, sizeof times, "%.6f\t%.6f\t", segment.start, segment.end);
    return times + replace_all(text, "\t", " ");
}

// One object a recording, written at its end.
class JsonWriter : public WriterBase {
  public:
    using WriterBase::WriterBase;
    void begin(const RecordingInfo& info) override {
        info_ = info;
        segments_ = Json::array();
    }
    void segment(const Segment& segment) override {
        Json json;
        json["id"] = segments_.size();
        json.update(to_json(segment));
        segments_.push_back(json);
    }
    void end(const std::string& text, const std::string& error) override {
        Json json = to_json(info_);
        json["language"] = info_.language;
        json["text"] = text;
        json["segments"] = segments_;
        if (!error.empty()) json["error"] = error;
        write_(dump(json, 2));
    }

  private:
    Json segments_;
};

// One line a segment, as it comes; one line for an error.
class JsonLinesWriter : public WriterBase {
  public:
    using WriterBase::WriterBase;
    void begin(const RecordingInfo& info) override { info_ = info; }
    void segment(const Segment& segment) override {
        Json json = to_json(info_);
        json.update(to_json(segment));
        json["language"] = segment.language;
        write_(dump(json));
    }
    void end(const std::string&, const std::string& error) override {
        if (error.empty()) return;
        Json json = to_json(info_);
        json["error"] = error;
        write_(dump(json));
    }
};

}  // namespace

const std::vector<std::string>& transcript_formats() {
    static const std::vector<std::string> kFormats = {"text", "srt",      "vtt",  "ass",  "tsv",
                                                      "csv",  "audacity", "json", "jsonl"};
    return kFormats;
}

std::string transcript_extension(const std::string& format) {
    if (format == "text") return ".txt";
    return format == "audacity" ? ".audacity.txt" : "." + format;
}

std::unique_ptr<TranscriptWriter> make_transcript_writer(const std::string& format,
                                                         TranscriptWriter::Write write,
                                                         const SubtitleLayout& layout) {
    if (format == "text") return std::make_unique<TextWriter>(std::move(write));
    if (format == "srt") return std::make_unique<SubtitleWriter>(std::move(write), layout, false);
    if (format == "vtt") return std::make_unique<SubtitleWriter>(std::move(write), layout, true);
    if (format == "ass") return std::make_unique<AssWriter>(std::move(write), layout);
    if (format == "tsv")
        return std::make_unique<TableWriter>(std::move(write), "start\tend\ttext\n", tsv_row);
    if (format == "csv")
        return std::make_unique<TableWriter>(std::move(write), "start,end,text\n", csv_row);
    if (format == "audacity")
        return std::make_unique<TableWriter>(std::move(write), "", audacity_row);
    if (format == "json") return std::make_unique<JsonWriter>(std::move(write));
    if (format == "jsonl") return std::make_unique<JsonLinesWriter>(std::move(write));
    fail("unknown format '", format, "'");
}

std::string format_time(double seconds, bool hours_always, char decimal_mark) {
    const long long total = milliseconds(seconds);
    const long long hours = total / 3'600'000, minutes = total / 60'000 % 60;
    char text[48];
    char head[24] = "";
    if (hours_always || hours > 0) std::snprintf(head, sizeof head, "%02lld:", hours);
    std::snprintf(text, sizeof text, "%s%02lld:%02lld%c%03lld", head, minutes, total / 1000 % 60,
                  decimal_mark, total % 1000);
    return text;
}

}  // namespace hark::whisper
