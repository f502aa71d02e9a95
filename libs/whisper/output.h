// Where transcripts go: one format on stdout, or a file a recording and format in a directory.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/cli.h"
#include "core/files.h"
#include "core/io.h"
#include "whisper/formats.h"

namespace hark::whisper {

struct OutputOptions {
    std::vector<std::string> formats = {"text"};
    std::string directory;  // empty: stdout

    void flags(Flags& flags);
    void check() const;  // throws UsageError
};

class TranscriptOutput {
  public:
    // Makes the directory where there is none.
    explicit TranscriptOutput(const OutputOptions& options);

    // Throws Error where a second recording comes on stdout in a format that holds one.
    void begin(const RecordingInfo& info);
    void segment(const Segment& segment);
    // The files of a recording appear here, whole; of one that broke, json and jsonl alone, which
    // say so.
    void end(const std::string& text, const std::string& error);

  private:
    // NAME of the source without its ending, made unique within the run; a channel other than the
    // first adds its number.
    std::string file_stem(const RecordingInfo& info);

    OutputOptions options_;
    ByteWriter stdout_;
    std::vector<std::unique_ptr<TranscriptWriter>> writers_;
    std::vector<std::unique_ptr<AtomicFile>> files_;
    std::set<std::string> stems_;
    int64_t count_ = 0;
};

}  // namespace hark::whisper
