#include "whisper/output.h"

#include <unistd.h>

#include <algorithm>

#include "core/error.h"

namespace hark::whisper {

namespace fs = std::filesystem;

void OutputOptions::flags(Flags& flags) {
    flags.add("format", formats, "FORMAT,... text, srt, vtt, tsv, json or jsonl");
    flags.add("output-dir", directory,
              "DIR write a file for each recording and format there; without it one format goes to "
              "stdout");
}

void OutputOptions::check() const {
    const std::vector<std::string>& known = transcript_formats();
    for (const std::string& format : formats)
        require_usage(std::find(known.begin(), known.end(), format) != known.end(),
                      "--format: expected text, srt, vtt, tsv, json or jsonl, found '", format,
                      "'");
    require_usage(!formats.empty(), "--format: expected at least one");
    require_usage(!directory.empty() || formats.size() == 1,
                  "--format: several formats need --output-dir DIR");
}

TranscriptOutput::TranscriptOutput(const OutputOptions& options)
    : options_(options), stdout_(STDOUT_FILENO, "stdout") {
    if (!options_.directory.empty()) {
        std::error_code failed;
        fs::create_directories(options_.directory, failed);
        require(fs::is_directory(options_.directory), options_.directory,
                ": cannot make this directory: ", failed.message());
        return;
    }
    writers_.push_back(
        make_transcript_writer(options_.formats.front(), [this](const std::string& text) {
            stdout_.write(text);
            stdout_.flush();
        }));
}

void TranscriptOutput::begin(const RecordingInfo& info) {
    ++count_;
    if (options_.directory.empty()) {
        require(count_ == 1 || writers_.front()->joins_recordings(), options_.formats.front(),
                " on stdout holds one recording, and '", info.source,
                "' is another: use --output-dir DIR");
    } else {
        const std::string stem = file_stem(info);
        for (const std::string& format : options_.formats) {
            files_.push_back(std::make_unique<AtomicFile>(fs::path(options_.directory) /
                                                          (stem + transcript_extension(format))));
            AtomicFile* file = files_.back().get();
            writers_.push_back(make_transcript_writer(
                format, [file](const std::string& text) { file->write(text); }));
        }
    }
    for (const auto& writer : writers_) writer->begin(info);
}

void TranscriptOutput::segment(const Segment& segment) {
    for (const auto& writer : writers_) writer->segment(segment);
}

void TranscriptOutput::end(const std::string& text, const std::string& error) {
    for (const auto& writer : writers_) writer->end(text, error);
    if (options_.directory.empty()) return;
    for (size_t i = 0; i < files_.size(); ++i)
        if (error.empty() || options_.formats[i].starts_with("json")) files_[i]->commit();
    files_.clear();
    writers_.clear();
}

std::string TranscriptOutput::file_stem(const RecordingInfo& info) {
    std::string stem = fs::path(info.source).stem().string();
    if (stem.empty() || stem == "." || stem == "..") stem = "recording";
    if (info.channel != "0") stem += "." + fs::path(info.channel).filename().string();
    std::string unique = stem;
    for (int n = 2; !stems_.insert(unique).second; ++n) unique = concat(stem, "-", n);
    return unique;
}

}  // namespace hark::whisper
