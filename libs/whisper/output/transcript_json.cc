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

std::string dump(const Json& json, int indent) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hark::whisper
