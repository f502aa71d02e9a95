#include "whisper/output/transcript_json.h"

#include <cmath>

namespace hark::whisper {

double rounded(double seconds) { return std::round(seconds * 1000) / 1000; }

Json to_json(const RecordingInfo& info) {
    Json json;
    json["source"] = info.source;
    if (info.channel != "0") json["channel"] = info.channel;
    return json;
}

Json to_json(const std::vector<Word>& words) {
    Json json = Json::array();
    for (const Word& word : words)
        json.push_back({{"word", word.text},
                        {"start", rounded(word.start)},
                        {"end", rounded(word.end)},
                        {"probability", word.probability}});
    return json;
}

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

void TranscriptJson::begin(const RecordingInfo& info) {
    info_ = info;
    segments_ = Json::array();
}

void TranscriptJson::add(const Segment& segment) {
    Json json;
    json["id"] = segments_.size();
    json.update(to_json(segment));
    segments_.push_back(json);
}

Json TranscriptJson::end(const std::string& text, const std::string& error) const {
    Json json = to_json(info_);
    json["language"] = info_.language;
    json["text"] = text;
    json["segments"] = segments_;
    if (!error.empty()) json["error"] = error;
    return json;
}

std::string dump(const Json& json, int indent) { return json_text(json, indent) + "\n"; }

}  // namespace hark::whisper
