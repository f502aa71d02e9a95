// html: a page that plays its recording. Its parts are the files of page/ (page_parts.h).
#include <string_view>

#include "core/error.h"
#include "text/utf8.h"
#include "whisper/output/format_writers.h"
#include "whisper/output/page_parts.h"
#include "whisper/output/transcript_json.h"

namespace hark::whisper {
namespace {

constexpr std::string_view kPage =
#include "whisper/output/page/transcript.html.inc"
    ;
constexpr std::string_view kPageScript =
#include "whisper/output/page/page.js.inc"
    ;

// As text of an element or an attribute.
std::string html_escaped(std::string text) {
    text = replace_all(std::move(text), "&", "&amp;");
    text = replace_all(replace_all(std::move(text), "<", "&lt;"), ">", "&gt;");
    return replace_all(replace_all(std::move(text), "\"", "&quot;"), "'", "&#39;");
}

// Within <script>: "<" could end it. U+2028 and U+2029 end lines of JavaScript.
std::string script_escaped(std::string json) {
    json = replace_all(std::move(json), "<", "\\u003c");
    json = replace_all(std::move(json), "\u2028", "\\u2028");
    return replace_all(std::move(json), "\u2029", "\\u2029");
}

// The recording's file name.
std::string title_of(const RecordingInfo& info) {
    const std::string name = info.source.substr(info.source.find_last_of('/') + 1);
    const std::string channel = info.channel == "0" ? "" : ", channel " + info.channel;
    return one_line(replace_invalid(name + channel));
}

// The whole page is written at the recording's end.
class HtmlWriter : public OneRecordingWriter {
  public:
    using OneRecordingWriter::OneRecordingWriter;
    void begin(const RecordingInfo& info) override {
        info_ = info;
        transcript_.begin(info);
    }
    void segment(const Segment& segment) override {
        transcript_.add(segment);
        const std::string line = line_of(segment);
        if (!line.empty()) lines_ += replace_invalid(line) + "\n";
    }
    void end(const std::string& text, const std::string& error) override {
        const Json transcript = transcript_.end(text, error);
        write_(filled_page(kPage, [&](std::string_view name) { return part(name, transcript); }));
    }

  private:
    // What stands for {{name}} in transcript.html.
    std::string part(std::string_view name, const Json& transcript) const {
        if (name == "title") return html_escaped(title_of(info_));
        if (name == "language") return html_escaped(info_.language);
        if (name == "style") return std::string(page_style());
        if (name == "recording") return std::string(page_recording());
        if (name == "lines") return html_escaped(lines_);
        if (name == "transcript") return script_escaped(dump(transcript));
        require(name == "script", "internal error: transcript.html has {{", name, "}}");
        std::string scripts;
        for (const PageScript& script : page_scripts()) scripts += script.text;
        return scripts += kPageScript;
    }

    TranscriptJson transcript_;
    std::string lines_;  // for browsers without JavaScript
};

}  // namespace

WriterPointer make_html_writer(TranscriptWriter::Write write) {
    return std::make_unique<HtmlWriter>(std::move(write));
}

}  // namespace hark::whisper
