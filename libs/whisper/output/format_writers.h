// Shared by the writers of the formats; formats.h is the interface.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "whisper/output/formats.h"
#include "whisper/output/strings.h"

namespace hark::whisper {

class WriterBase : public TranscriptWriter {
  public:
    explicit WriterBase(Write write) : write_(std::move(write)) {}

  protected:
    Write write_;
    RecordingInfo info_;
};

// Formats of one recording: a second one after it would break the file.
class OneRecordingWriter : public WriterBase {
  public:
    using WriterBase::WriterBase;
    void end(const std::string&, const std::string&) override {}
    bool joins_recordings() const override { return false; }
};

// A segment's text as one line.
inline std::string line_of(const Segment& segment) { return strip(one_line(segment.text)); }

inline std::string replace_all(std::string text, const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
}

using WriterPointer = std::unique_ptr<TranscriptWriter>;
WriterPointer make_text_writer(TranscriptWriter::Write write, const TextLayout& layout);
WriterPointer make_markdown_writer(TranscriptWriter::Write write);
WriterPointer make_lyrics_writer(TranscriptWriter::Write write);
WriterPointer make_subtitle_writer(TranscriptWriter::Write write, const SubtitleLayout& layout,
                                   bool vtt);
WriterPointer make_html_writer(TranscriptWriter::Write write);
WriterPointer make_ass_writer(TranscriptWriter::Write write, const SubtitleLayout& layout);

}  // namespace hark::whisper
