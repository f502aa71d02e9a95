// Where transcripts go: one format on stdout, or a file a recording and format in a directory.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cli.h"
#include "core/files.h"
#include "core/io.h"
#include "whisper/formats.h"
#include "whisper/output_names.h"

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
    // Makes the directory if there is none, and the summary.
    explicit TranscriptOutput(const OutputOptions& options);

    // Throws Error for a second recording on stdout in a format that holds one.
    void begin(const RecordingInfo& info);
    void segment(const Segment& segment);
    // The files of a recording appear here, whole; of one that broke, json and jsonl alone, which
    // say so. Returns what broke it: `error`, or why its files cannot be written.
    std::string end(const std::string& text, const std::string& error);

  private:
    void open_files();
    void write(const std::function<void()>& step);

    OutputOptions options_;
    ByteWriter stdout_;
    std::unique_ptr<Summary> summary_;
    OutputNames names_;
    RecordingInfo info_;   // of the recording that has begun
    std::string stem_;     // of its files
    std::string failure_;  // why its files cannot be written
    std::vector<std::unique_ptr<TranscriptWriter>> writers_;
    std::vector<std::unique_ptr<AtomicFile>> files_;
    std::optional<std::string> first_;  // the first recording of the run
};

}  // namespace hark::whisper
