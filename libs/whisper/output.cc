#include "whisper/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iomanip>
#include <sstream>

#include "core/error.h"

namespace hark::whisper {

namespace fs = std::filesystem;

namespace {

size_t longest_ending(const std::vector<std::string>& formats) {
    size_t most = 0;
    for (const std::string& format : formats)
        most = std::max(most, transcript_extension(format).size());
    return most;
}

// "text, srt or vtt", of all there are.
std::string format_names() {
    const std::vector<std::string>& formats = transcript_formats();
    std::string names = formats.front();
    for (size_t i = 1; i < formats.size(); ++i)
        names += (i + 1 < formats.size() ? ", " : " or ") + formats[i];
    return names;
}

}  // namespace

void OutputOptions::flags(Flags& flags) {
    flags.add(
        "format", formats,
        concat("FORMAT,... ", format_names(), "; without it text, with --live jsonl").c_str());
    flags.add_name(
        "output-dir", directory,
        "DIR write a file for each recording and format there; without it one format goes to "
        "stdout");
    flags.add_name(
        "summary", summary,
        "FILE write a line for each recording there when it has ended: its seconds, and what "
        "broke it if anything did");
    flags.add(
        "max-line-width", layout.max_line_width,
        "N with --word-timestamps: columns of a line in srt, vtt and ass; wide characters take "
        "two; 0: any number",
        0, 10'000);
    flags.add(
        "max-line-count", layout.max_line_count,
        "N with --max-line-width: lines of a cue, which may then join and cut segments; 0: any "
        "number, of one segment",
        0, 1000);
    flags.add("max-words-per-line", layout.max_words_per_line,
              "N with --word-timestamps: words of a cue in srt, vtt and ass; 0: any number", 0,
              1000);
    flags.add_switch("highlight-words", layout.highlight_words,
                     "with --word-timestamps: underline each word in srt and vtt while it is "
                     "spoken");
}

void OutputOptions::settle(const std::string& format) {
    if (formats.empty()) formats = {format};
}

void OutputOptions::check(bool words) const {
    const std::vector<std::string>& known = transcript_formats();
    for (const std::string& format : formats)
        require_usage(std::find(known.begin(), known.end(), format) != known.end(),
                      "--format: expected ", format_names(), ", found '", format, "'");
    require_usage(!directory.empty() || formats.size() == 1,
                  "--format: several formats need --output-dir DIR");
    check_layout(words);
}

void OutputOptions::check_layout(bool words) const {
    const auto needs = [&](bool given, const char* flag, const std::vector<std::string>& shown_in,
                           const char* names) {
        require_usage(words || !given, flag, ": needs --word-timestamps");
        const bool shown = std::any_of(formats.begin(), formats.end(), [&](const std::string& f) {
            return std::find(shown_in.begin(), shown_in.end(), f) != shown_in.end();
        });
        require_usage(shown || !given, flag, ": shapes ", names,
                      ", and --format names none of them");
    };
    const std::vector<std::string> subtitles = {"srt", "vtt", "ass"};
    needs(layout.max_line_width > 0, "--max-line-width", subtitles, "srt, vtt and ass");
    needs(layout.max_line_count > 0, "--max-line-count", subtitles, "srt, vtt and ass");
    needs(layout.max_words_per_line > 0, "--max-words-per-line", subtitles, "srt, vtt and ass");
    needs(layout.highlight_words, "--highlight-words", {"srt", "vtt"}, "srt and vtt");
    require_usage(layout.max_line_count == 0 || layout.max_line_width > 0,
                  "--max-line-count: needs --max-line-width, without which lines do not end");
    require_usage(layout.max_line_count == 0 || layout.max_words_per_line == 0,
                  "--max-words-per-line: says nothing where --max-line-width and "
                  "--max-line-count fill the cues");
}

Summary::Summary(const std::string& path)
    : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    require(fd_ >= 0, path_, ": cannot write the summary: ", std::strerror(errno));
    line({"source", "channel", "file", "seconds", "error"});
}

Summary::~Summary() { ::close(fd_); }

void Summary::add(const RecordingInfo& info, const std::string& file, const std::string& error) {
    std::ostringstream seconds;
    seconds << std::fixed << std::setprecision(2) << info.seconds;
    line({info.source, info.channel, file, seconds.str(), error});
}

void Summary::line(std::vector<std::string> fields) {
    std::string text;
    for (std::string& field : fields) {
        for (char& c : field)
            if (c == '\t' || c == '\n' || c == '\r') c = ' ';
        text += field + (&field == &fields.back() ? "\n" : "\t");
    }
    ByteWriter out(fd_, path_);
    out.write(text);
    out.flush();
}

TranscriptOutput::TranscriptOutput(const OutputOptions& options)
    : options_(options), stdout_(STDOUT_FILENO, "stdout"), names_(longest_ending(options.formats)) {
    if (!options_.summary.empty()) summary_ = std::make_unique<Summary>(options_.summary);
    if (!options_.directory.empty()) {
        std::error_code failed;
        fs::create_directories(options_.directory, failed);
        require(fs::is_directory(options_.directory), options_.directory,
                ": cannot make this directory: ", failed.message());
        return;
    }
    writers_.push_back(make_transcript_writer(
        options_.formats.front(),
        [this](const std::string& text) {
            stdout_.write(text);
            stdout_.flush();
        },
        options_.layout));
}

// Files that cannot be written fail their recording and no other. What breaks stdout ends the run.
void TranscriptOutput::write(const std::function<void()>& step) {
    if (options_.directory.empty()) return step();
    if (!failure_.empty()) return;
    try {
        step();
    } catch (const std::runtime_error& failure) {
        failure_ = failure.what();
    }
}

void TranscriptOutput::open_files() {
    for (const std::string& format : options_.formats) {
        files_.push_back(std::make_unique<AtomicFile>(fs::path(options_.directory) /
                                                      (stem_ + transcript_extension(format))));
        AtomicFile* file = files_.back().get();
        writers_.push_back(make_transcript_writer(
            format, [file](const std::string& text) { file->write(text); }, options_.layout));
    }
}

void TranscriptOutput::begin(const RecordingInfo& info) {
    info_ = info;
    failure_.clear();
    if (options_.directory.empty()) {
        require(!first_ || writers_.front()->joins_recordings(), info.source, ": ",
                options_.formats.front(), " on stdout holds one recording, and ",
                first_.value_or(""), " is written already; use --output-dir DIR for several");
        stem_ = "-";
    } else {
        stem_ = names_.add(info);
        write([&] { open_files(); });
    }
    if (!first_) first_ = info.source;
    write([&] {
        for (const auto& writer : writers_) writer->begin(info);
    });
}

void TranscriptOutput::segment(const Segment& segment) {
    write([&] {
        for (const auto& writer : writers_) writer->segment(segment);
    });
}

std::string TranscriptOutput::end(const std::string& text, const std::string& error) {
    write([&] {
        for (const auto& writer : writers_) writer->end(text, error);
        for (size_t i = 0; i < files_.size(); ++i)
            if (error.empty() || options_.formats[i].starts_with("json")) files_[i]->commit();
    });
    files_.clear();
    if (!options_.directory.empty()) writers_.clear();
    const bool both = !error.empty() && !failure_.empty();
    const std::string reason = error + (both ? "; " : "") + failure_;
    if (summary_) summary_->add(info_, stem_, reason);
    return reason;
}

}  // namespace hark::whisper
