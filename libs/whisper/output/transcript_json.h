// What json, jsonl and the events of --live have in common.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "whisper/output/formats.h"

namespace hark::whisper {

using Json = nlohmann::ordered_json;

// Times to the millisecond: what a 0.02 s step can say, without the noise of the arithmetic.
double rounded(double seconds);
// "source", and "channel" of another than the first.
Json to_json(const RecordingInfo& info);
// A list of "word", "start", "end", "probability".
Json to_json(const std::vector<Word>& words);
// A line, or with `indent` several; always UTF-8.
std::string dump(const Json& json, int indent = -1);

}  // namespace hark::whisper
