// Where transcripts go: one format on stdout, or a file per recording and format in a directory.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cli/cli.h"
#include "core/files/files.h"
#include "core/files/io.h"
#include "whisper/output/formats.h"
#include "whisper/output/output_names.h"

namespace hark::whisper {

struct OutputOptions {
    std::vector<std::string> formats;
    std::string directory;  // empty: stdout
    std::string summary;    // a file with a line per recording; empty: none
    SubtitleLayout subtitles;
    TextLayout text;
    std::string name_template = "{stem}";  // of files in the directory
    bool overwrite = false;                // files that exist
    bool is_private = false;               // nobody but their user reads them

    void flags(Flags& flags);
    // Sets `format` if none is given; replaces `all` by all_formats().
    void resolve_formats(const std::string& format);
    // Whether html, which is made for words with times, is the only format.
    bool is_html() const { return formats.size() == 1 && formats.front() == "html"; }
    // Throws UsageError; `words`: whether the segments will have them.
    void check(bool words) const;

  private:
    void check_subtitles(bool words) const;
    void check_text() const;
    void check_files() const;
};

// A table of the recordings that have ended, tab-separated under a heading. A line is written as
// soon as its recording has ended.
class Summary {
  public:
    explicit Summary(const std::string& path);
    ~Summary();
    Summary(const Summary&) = delete;
    Summary& operator=(const Summary&) = delete;

    // `file` is the name of its files, without ending.
    void add(const RecordingInfo& info, const std::string& file, const std::string& error);

  private:
    void line(std::vector<std::string> fields);

    std::string path_;
    int fd_;
};

class TranscriptOutput {
  public:
    // Creates the directory if it does not exist, and the summary. `warn` gets warnings about
    // names.
    explicit TranscriptOutput(const OutputOptions& options,
                              std::function<void(const std::string&)> warn = {});

    // Plans the files of a recording, before it is transcribed: recordings begin in the order of
    // plan(). Returns why its files cannot be written, or "".
    std::string plan(const RecordingInfo& info);
    // Throws Error for a second recording on stdout in a format that holds one.
    void begin(const RecordingInfo& info);
    void segment(const Segment& segment);
    // Creates the recording's files, complete; after an error json and jsonl alone, which contain
    // it. Returns `error`, or why the files cannot be written.
    std::string end(const std::string& text, const std::string& error);

  private:
    // The files of a recording that has not begun.
    struct Plan {
        std::string path;     // relative to the directory, without ending
        std::string failure;  // why they cannot be written
    };
    std::filesystem::path path_of(const std::string& path, const std::string& format) const;
    void refuse_existing(const std::string& path) const;
    void open_files();
    void write(const std::function<void()>& step);

    OutputOptions options_;
    std::function<void(const std::string&)> warn_;
    ByteWriter stdout_;
    std::unique_ptr<Summary> summary_;
    OutputNames names_;
    std::deque<Plan> plans_;
    // Of the recording that has begun. `now_.failure`: why its files cannot be written.
    RecordingInfo info_;
    Plan now_;
    std::vector<std::unique_ptr<TranscriptWriter>> writers_;
    std::vector<std::unique_ptr<AtomicFile>> files_;
    std::optional<std::string> first_;  // source of the first recording of the run
};

}  // namespace hark::whisper
