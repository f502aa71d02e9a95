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
    std::vector<std::string> formats;
    std::string directory;  // empty: stdout
    std::string summary;    // a file with a line a recording; empty: none
    SubtitleLayout layout;

    void flags(Flags& flags);
    // The format where none is given.
    void settle(const std::string& format);
    // Throws UsageError; `words`: whether the segments will have them.
    void check(bool words) const;

  private:
    void check_layout(bool words) const;
};

// A table of the recordings that have ended, tab-separated under a heading; a line is in the file,
// or through the pipe, as soon as its recording has ended.
class Summary {
  public:
    explicit Summary(const std::string& path);
    ~Summary();
    Summary(const Summary&) = delete;
    Summary& operator=(const Summary&) = delete;

    // `file` is the name of what was written for it, without its ending.
    void add(const RecordingInfo& info, const std::string& file, const std::string& error);

  private:
    void line(std::vector<std::string> fields);

    std::string path_;
    int fd_;
};

class TranscriptOutput {
  public:
    // Makes the directory where there is none, and the summary.
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
    std::unique_ptr<Summary> summary_;
    RecordingInfo info_;  // of the recording that has begun
    std::string stem_;    // of its files
    std::vector<std::unique_ptr<TranscriptWriter>> writers_;
    std::vector<std::unique_ptr<AtomicFile>> files_;
    std::set<std::string> stems_;
    int64_t count_ = 0;
};

}  // namespace hark::whisper
