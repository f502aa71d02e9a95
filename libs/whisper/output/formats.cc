#include "whisper/output/formats.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "whisper/output/format_writers.h"
#include "whisper/output/transcript_json.h"

namespace hark::whisper {
namespace {

int64_t milliseconds(double seconds) { return std::llround(seconds * 1000); }

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

// One object per recording, written at its end.
class JsonWriter : public WriterBase {
  public:
    using WriterBase::WriterBase;
    void begin(const RecordingInfo& info) override { transcript_.begin(info); }
    void segment(const Segment& segment) override { transcript_.add(segment); }
    void end(const std::string& text, const std::string& error) override {
        write_(dump(transcript_.end(text, error), 2));
    }

  private:
    TranscriptJson transcript_;
};

// One line per segment, one for an error.
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
    static const std::vector<std::string> kFormats = {"text", "srt",  "vtt",   "ass",
                                                      "lrc",  "tsv",  "csv",   "audacity",
                                                      "md",   "json", "jsonl", "html"};
    return kFormats;
}

std::vector<std::string> all_formats() {
    std::vector<std::string> formats = transcript_formats();
    std::erase(formats, "html");
    return formats;
}

std::string transcript_extension(const std::string& format) {
    if (format == "text") return ".txt";
    return format == "audacity" ? ".audacity.txt" : "." + format;
}

std::unique_ptr<TranscriptWriter> make_transcript_writer(const std::string& format,
                                                         TranscriptWriter::Write write,
                                                         const SubtitleLayout& subtitles,
                                                         const TextLayout& text) {
    if (format == "text") return make_text_writer(std::move(write), text);
    if (format == "srt") return make_subtitle_writer(std::move(write), subtitles, false);
    if (format == "vtt") return make_subtitle_writer(std::move(write), subtitles, true);
    if (format == "ass") return make_ass_writer(std::move(write), subtitles);
    if (format == "lrc") return make_lyrics_writer(std::move(write));
    if (format == "html") return make_html_writer(std::move(write));
    if (format == "md") return make_markdown_writer(std::move(write));
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
