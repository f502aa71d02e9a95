// Shared by json, jsonl, html and the events of --live.
#pragma once

#include <string>
#include <vector>

#include "core/json/json.h"
#include "whisper/output/formats.h"

namespace hark::whisper {

using Json = nlohmann::ordered_json;

// Rounds times to the millisecond: their step is 0.02 s.
double rounded(double seconds);
// "source", and "channel" unless it is the first.
Json to_json(const RecordingInfo& info);
// A list of "word", "start", "end", "probability".
Json to_json(const std::vector<Word>& words);
Json to_json(const Segment& segment);
// A line, or with `indent` several; always UTF-8.
std::string dump(const Json& json, int indent = -1);

// Gathers a recording's transcript as one object.
class TranscriptJson {
  public:
    void begin(const RecordingInfo& info);
    void add(const Segment& segment);
    // The object, with the recording's whole text and its error if any.
    Json end(const std::string& text, const std::string& error) const;

  private:
    RecordingInfo info_;
    Json segments_;
};

}  // namespace hark::whisper
