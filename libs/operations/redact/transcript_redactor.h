// Transcripts as lines of JSON, with personal data replaced.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operations/redact/finder.h"

namespace hark::redact {

class TranscriptRedactor {
  public:
    using Write = std::function<void(const std::string& line)>;
    // Told the seconds of each part of a recording that is replaced. Without it no times are
    // needed.
    using Mute = std::function<void(const std::string& source, double begin, double end)>;

    TranscriptRedactor(Finder finder, Write write, Mute mute);
    ~TranscriptRedactor();

    // Takes the next line of whisper-transcribe's jsonl. A segment is written once the next three
    // of its recording are there, since a number may go over several; one without a finding is
    // written as it came. In others `text` and `words` have labels, "[PHONE]", and `tokens` is
    // empty. Strings under keys that whisper-transcribe does not write are searched too. Throws
    // Error beginning with `where` if it is no such line, or lacks the times that `mute` is told.
    void add(const std::string& line, const std::string& where);
    // Writes what is held back.
    void finish();

    // How many were replaced, by kind.
    const std::map<Kind, int64_t>& counts() const { return counts_; }

  private:
    struct Segment;

    void release_first();
    void redact(Segment& segment);
    void redact_others(Segment& segment);

    Finder finder_;
    Write write_;
    Mute mute_;
    std::vector<Segment> held_;  // of one recording
    std::map<Kind, int64_t> counts_;
};

}  // namespace hark::redact
