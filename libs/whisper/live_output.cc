#include "whisper/live_output.h"

#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "whisper/strings.h"

namespace hark::whisper {
namespace {

using Json = nlohmann::ordered_json;

double rounded(double seconds) { return std::round(seconds * 1000) / 1000; }

Json to_json(const RecordingInfo& info) {
    Json json;
    json["source"] = info.source;
    if (info.channel != "0") json["channel"] = info.channel;
    return json;
}

Json to_json(const char* event, const RecordingInfo& info, const LiveSegment& segment) {
    Json json = to_json(info);
    json["event"] = event;
    json["start"] = rounded(segment.start);
    json["end"] = rounded(segment.end);
    json["text"] = segment.text;
    return json;
}

std::string dump(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

LiveOutput::LiveOutput(const std::string& format)
    : events_(format == "jsonl"), stdout_(STDOUT_FILENO, "stdout") {}

void LiveOutput::line(const std::string& text) {
    stdout_.write(text + "\n");
    stdout_.flush();
}

void LiveOutput::partial(const RecordingInfo& info, const LivePartial& partial) {
    if (!events_) return;
    Json json = to_json("partial", info, partial.segment);
    json["agreed"] = partial.segment.text.substr(0, partial.agreed);
    line(dump(json));
}

void LiveOutput::final(const RecordingInfo& info, const LiveSegment& segment) {
    if (!events_) return line(strip(one_line(segment.text)));
    Json json = to_json("final", info, segment);
    json["language"] = info.language;
    json["words"] = Json::array();
    for (const Word& word : segment.words)
        json["words"].push_back({{"word", word.text},
                                 {"start", rounded(word.start)},
                                 {"end", rounded(word.end)},
                                 {"probability", word.probability}});
    line(dump(json));
}

void LiveOutput::end(const RecordingInfo& info, const std::string& error) {
    if (!events_ || error.empty()) return;
    Json json = to_json(info);
    json["error"] = error;
    line(dump(json));
}

}  // namespace hark::whisper
