// Shared by json, jsonl and the events of --live.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "whisper/output/formats.h"

namespace hark::whisper {

using Json = nlohmann::ordered_json;

// Rounds times to the millisecond: their step is 0.02 s.
double rounded(double seconds);
// "source", and "channel" unless it is the first.
Json to_json(const RecordingInfo& info);
// A list of "word", "start", "end", "probability".
Json to_json(const std::vector<Word>& words);
// A line, or with `indent` several; always UTF-8.
std::string dump(const Json& json, int indent = -1);

}  // namespace hark::whisper
