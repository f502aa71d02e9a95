#include "whisper/formats.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "whisper/strings.h"

namespace hark::whisper {
namespace {

using Json = nlohmann::ordered_json;

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
}

// Times to the millisecond: what a 0.02 s step can say, without the noise of the arithmetic.
double rounded(double seconds) { return std::round(seconds * 1000) / 1000; }

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
    if (!segment.words) return json;
    json["words"] = Json::array();
    for (const Word& word : *segment.words)
        json["words"].push_back({{"word", word.text},
                                 {"start", rounded(word.start)},
                                 {"end", rounded(word.end)},
                                 {"probability", word.probability}});
    return json;
}

Json to_json(const RecordingInfo& info) {
    Json json;
    json["source"] = info.source;
    if (info.channel != "0") json["channel"] = info.channel;
    return json;
}

std::string dump(const Json& json, int indent = -1) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

class WriterBase : public TranscriptWriter {
  public:
    explicit WriterBase(Write write) : write_(std::move(write)) {}

  protected:
    Write write_;
    RecordingInfo info_;
    int64_t count_ = 0;  // segments of this recording
};

// A line a segment; a blank line between recordings.
class TextWriter : public WriterBase {
  public:
    using WriterBase::WriterBase;
    void begin(const RecordingInfo&) override {
        if (std::exchange(any_, true)) write_("\n");
    }
    void segment(const Segment& segment) override { write_(strip(segment.text) + "\n"); }
    void end(const std::string&, const std::string&) override {}

  private:
    bool any_ = false;
};

class SubtitleWriter : public WriterBase {
  public:
    SubtitleWriter(Write write, bool vtt) : WriterBase(std::move(write)), vtt_(vtt) {}
    void begin(const RecordingInfo&) override {
        count_ = 0;
        if (vtt_) write_("WEBVTT\n\n");
    }
    void segment(const Segment& segment) override {
        const char mark = vtt_ ? '.' : ',';
        const std::string number = vtt_ ? "" : std::to_string(++count_) + "\n";
        write_(number + format_time(segment.start, !vtt_, mark) + " --> " +
               format_time(segment.end, !vtt_, mark) + "\n" +
               replace_all(strip(segment.text), "-->", "->") + "\n\n");
    }
    void end(const std::string&, const std::string&) override {}
    bool joins_recordings() const override { return false; }

  private:
    bool vtt_;
};

// Milliseconds and text, with a heading.
class TsvWriter : public WriterBase {
  public:
    using WriterBase::WriterBase;
    void begin(const RecordingInfo&) override { write_("start\tend\ttext\n"); }
    void segment(const Segment& segment) override {
        write_(concat(std::llround(segment.start * 1000), "\t", std::llround(segment.end * 1000),
                      "\t", replace_all(strip(segment.text), "\t", " "), "\n"));
    }
    void end(const std::string&, const std::string&) override {}
    bool joins_recordings() const override { return false; }
};

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
    static const std::vector<std::string> kFormats = {"text", "srt", "vtt", "tsv", "json", "jsonl"};
    return kFormats;
}

std::string transcript_extension(const std::string& format) {
    return format == "text" ? ".txt" : "." + format;
}

std::unique_ptr<TranscriptWriter> make_transcript_writer(const std::string& format,
                                                         TranscriptWriter::Write write) {
    if (format == "text") return std::make_unique<TextWriter>(std::move(write));
    if (format == "srt") return std::make_unique<SubtitleWriter>(std::move(write), false);
    if (format == "vtt") return std::make_unique<SubtitleWriter>(std::move(write), true);
    if (format == "tsv") return std::make_unique<TsvWriter>(std::move(write));
    if (format == "json") return std::make_unique<JsonWriter>(std::move(write));
    if (format == "jsonl") return std::make_unique<JsonLinesWriter>(std::move(write));
    fail("unknown format '", format, "'");
}

std::string format_time(double seconds, bool hours_always, char decimal_mark) {
    const long long total = std::llround(seconds * 1000);
    const long long hours = total / 3'600'000, minutes = total / 60'000 % 60;
    char text[48];
    char head[24] = "";
    if (hours_always || hours > 0) std::snprintf(head, sizeof head, "%02lld:", hours);
    std::snprintf(text, sizeof text, "%s%02lld:%02lld%c%03lld", head, minutes, total / 1000 % 60,
                  decimal_mark, total % 1000);
    return text;
}

}  // namespace hark::whisper
