#include "whisper/output/live_output.h"

#include <utility>

#include "whisper/output/transcript_json.h"

namespace hark::whisper {
namespace {

Json to_json(const char* event, const RecordingInfo& info, const LiveSegment& segment) {
    Json json = to_json(info);
    json["event"] = event;
    json["start"] = rounded(segment.start);
    json["end"] = rounded(segment.end);
    json["text"] = segment.text;
    return json;
}

}  // namespace

LiveOutput::LiveOutput(const std::string& format, const TextLayout& layout,
                       std::function<void(const std::string&)> write)
    : events_(format == "jsonl"), layout_(layout), write_(std::move(write)) {}

void LiveOutput::partial(const RecordingInfo& info, const LivePartial& partial) {
    if (!events_) return;
    Json json = to_json("partial", info, partial.segment);
    json["agreed"] = partial.segment.text.substr(0, partial.committed);
    write_(dump(json));
}

void LiveOutput::final(const RecordingInfo& info, const LiveSegment& segment) {
    if (!events_)
        return write_(text_line(segment.start, segment.end, segment.text, segment.words, layout_) +
                      "\n");
    Json json = to_json("final", info, segment);
    json["language"] = info.language;
    json["words"] = to_json(segment.words);
    write_(dump(json));
}

void LiveOutput::end(const RecordingInfo& info, const std::string& error) {
    if (!events_ || error.empty()) return;
    Json json = to_json(info);
    json["error"] = error;
    write_(dump(json));
}

}  // namespace hark::whisper
