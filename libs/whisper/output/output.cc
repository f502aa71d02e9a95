#include "whisper/output/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iomanip>
#include <sstream>

#include "core/cli/suggest.h"
#include "core/error.h"
#include "core/ranges.h"

namespace hark::whisper {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> endings_of(const std::vector<std::string>& formats) {
    std::vector<std::string> endings;
    for (const std::string& format : formats) endings.push_back(transcript_extension(format));
    return endings;
}

bool any_of(const std::vector<std::string>& given, const std::vector<std::string>& wanted) {
    return std::any_of(given.begin(), given.end(),
                       [&](const std::string& one) { return contains(wanted, one); });
}

}  // namespace

void OutputOptions::flags(Flags& flags) {
    flags.section("Output");
    std::vector<std::string> offered = transcript_formats();
    offered.push_back("all");
    flags.add("format,f", formats, concat("FORMAT,... ", joined(transcript_formats())).c_str())
        .suggests(offered)
        .own_variable()
        .essential()
        .details(
            "`all` stands for all but html. The default is text, with --live jsonl. Several "
            "formats need --output-dir. html alone implies --word-timestamps. The manual "
            "describes each under `Transcripts`");
    flags.add_name("output-dir,o", directory, "DIR to write a file per recording and format to")
        .essential()
        .completes(Completes::directory)
        .details("Without it, one format is written to stdout");
    flags.add("output-name", name_template, "TEMPLATE for names of files in --output-dir")
        .details(
            "Fields: {name} is the recording's file name, {stem} the same without ending, "
            "{folder} its folder, {channel} the channel, {n} its number in the run. "
            "`{folder}/{stem}` mirrors folders");
    flags.add_switch("overwrite", overwrite, "replace files that exist in --output-dir")
        .essential()
        .details("Without it, a recording whose files exist is not transcribed, and fails");
    flags.add_switch("private", is_private, "make files that only you can read")
        .essential()
        .details("Files have mode 0600, folders 0700, and the system writes no memory dump");
    flags.add_switch("times", text.times, "write each segment's start and end in text")
        .essential()
        .details("As openai-whisper prints them: [00:00.000 --> 00:02.560]");
    flags.add_switch("confidence", text.confidence, "mark words of low probability on a terminal")
        .details(
            "Implies --word-timestamps. In text on stdout: below 0.7 underlined and yellow, below "
            "0.4 underlined, bold and red. See --color");
    flags.add_name("summary", summary, "FILE to write a table of recordings and errors to")
        .completes(Completes::file)
        .details("A line is written as soon as its recording has ended");
    flags.section("Subtitles");
    flags
        .add("max-line-width", subtitles.max_line_width,
             "N columns of a line in srt, vtt and ass; 0: no limit", 0, 10'000)
        .details("Needs --word-timestamps. Wide characters take two columns");
    flags.add("max-line-count", subtitles.max_line_count, "N lines of a cue; 0: no limit", 0, 1000)
        .details("Needs --max-line-width. Cues may then join and cut segments");
    flags
        .add("max-words-per-line", subtitles.max_words_per_line,
             "N words of a cue in srt, vtt and ass; 0: no limit", 0, 1000)
        .details("Needs --word-timestamps");
    flags
        .add_switch("highlight-words", subtitles.highlight_words,
                    "underline each word in srt and vtt while it is spoken")
        .details("Needs --word-timestamps");
}

void OutputOptions::resolve_formats(const std::string& format) {
    if (formats.empty()) formats = {format};
    std::vector<std::string> given = std::move(formats);
    if (any_of(given, {"all"})) {
        std::erase(given, "all");
        const std::vector<std::string> all = all_formats();
        given.insert(given.begin(), all.begin(), all.end());
    }
    formats.clear();
    for (const std::string& one : given)
        if (!any_of(formats, {one})) formats.push_back(one);
}

void OutputOptions::check(bool words) const {
    const std::vector<std::string>& known = transcript_formats();
    for (const std::string& format : formats)
        require_usage(any_of(known, {format}), "--format: unknown format '", format, "'",
                      did_you_mean(format, known), "; expected ", joined(known), " or all");
    require_usage(!directory.empty() || formats.size() == 1, "--format: ", formats.size(),
                  " formats need --output-dir DIR; stdout takes one");
    check_subtitles(words);
    check_text();
    check_files();
}

void OutputOptions::check_subtitles(bool words) const {
    const auto needs = [&](bool given, const char* flag, const std::vector<std::string>& shown_in) {
        require_usage(words || !given, flag, ": needs --word-timestamps");
        require_usage(!given || any_of(formats, shown_in), flag, ": is for ", joined(shown_in),
                      " (got --format ", joined(formats), ")");
    };
    const std::vector<std::string> cues = {"srt", "vtt", "ass"};
    needs(subtitles.max_line_width > 0, "--max-line-width", cues);
    needs(subtitles.max_line_count > 0, "--max-line-count", cues);
    needs(subtitles.max_words_per_line > 0, "--max-words-per-line", cues);
    needs(subtitles.highlight_words, "--highlight-words", {"srt", "vtt"});
    require_usage(subtitles.max_line_count == 0 || subtitles.max_line_width > 0,
                  "--max-line-count: needs --max-line-width, without which lines do not end");
    require_usage(subtitles.max_line_count == 0 || subtitles.max_words_per_line == 0,
                  "--max-words-per-line: has no effect with --max-line-count, which fills cues");
}

void OutputOptions::check_text() const {
    const bool is_text = any_of(formats, {"text"});
    require_usage(is_text || !text.times, "--times: is for text (got --format ", joined(formats),
                  ")");
    require_usage((is_text && directory.empty()) || !text.confidence,
                  "--confidence: is for text on stdout (got ",
                  is_text ? "--output-dir" : concat("--format ", joined(formats)), ")");
}

void OutputOptions::check_files() const {
    check_name_template(name_template);
    const bool named = name_template != OutputOptions().name_template;
    require_usage(!directory.empty() || !named, "--output-name: needs --output-dir DIR");
    require_usage(!directory.empty() || !overwrite, "--overwrite: needs --output-dir DIR");
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

TranscriptOutput::TranscriptOutput(const OutputOptions& options,
                                   std::function<void(const std::string&)> warn)
    : options_(options),
      warn_(std::move(warn)),
      stdout_(STDOUT_FILENO, "stdout"),
      names_(options.name_template, endings_of(options.formats)) {
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
        options_.subtitles, options_.text));
}

fs::path TranscriptOutput::path_of(const std::string& path, const std::string& format) const {
    return fs::path(options_.directory) / (path + transcript_extension(format));
}

void TranscriptOutput::refuse_existing(const std::string& path) const {
    if (options_.overwrite) return;
    for (const std::string& format : options_.formats) {
        const fs::path file = path_of(path, format);
        std::error_code unknown;  // opening the file reports it
        require(!fs::is_regular_file(file, unknown), file.string(),
                " exists; use --overwrite or another --output-dir");
    }
}

std::string TranscriptOutput::plan(const RecordingInfo& info) {
    Plan plan{"-", ""};
    if (!options_.directory.empty()) {
        try {
            const OutputNames::Name name = names_.add(info);
            plan.path = name.path;
            refuse_existing(name.path);
            if (!name.taken_by.empty() && warn_)
                warn_(concat(info.source, ": written to ", name.path, ", because ", name.taken_by,
                             " has the same name"));
        } catch (const Error& failure) {
            plan.failure = failure.what();
        }
    }
    plans_.push_back(plan);
    return plan.failure;
}

// A file that cannot be written fails its recording alone. An error of stdout ends the run.
void TranscriptOutput::write(const std::function<void()>& step) {
    if (options_.directory.empty()) return step();
    if (!now_.failure.empty()) return;
    try {
        step();
    } catch (const std::runtime_error& failure) {
        now_.failure = failure.what();
    }
}

void TranscriptOutput::open_files() {
    for (const std::string& format : options_.formats) {
        const fs::path target = path_of(now_.path, format);
        std::error_code failed;
        fs::create_directories(target.parent_path(), failed);
        require(!failed, target.parent_path().string(),
                ": cannot make this folder: ", failed.message());
        files_.push_back(std::make_unique<AtomicFile>(target));
        AtomicFile* file = files_.back().get();
        writers_.push_back(make_transcript_writer(
            format, [file](const std::string& text) { file->write(text); }, options_.subtitles,
            options_.text));
    }
}

void TranscriptOutput::begin(const RecordingInfo& info) {
    require(!plans_.empty(), "internal error: a recording begins that was not planned");
    now_ = std::move(plans_.front());
    plans_.pop_front();
    info_ = info;
    if (options_.directory.empty())
        require(!first_ || writers_.front()->joins_recordings(), info.source, ": ",
                options_.formats.front(), " on stdout holds one recording, and ",
                first_.value_or(""), " is written already; use --output-dir DIR for several");
    else
        write([&] { open_files(); });
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
        if (!files_.empty()) refuse_existing(now_.path);  // created by another program meanwhile
        for (size_t i = 0; i < files_.size(); ++i)
            if (error.empty() || options_.formats[i].starts_with("json")) files_[i]->commit();
    });
    files_.clear();
    if (!options_.directory.empty()) writers_.clear();
    const bool both = !error.empty() && !now_.failure.empty() && error != now_.failure;
    const std::string reason =
        both ? error + "; " + now_.failure : (error.empty() ? now_.failure : error);
    if (summary_) summary_->add(info_, now_.path, reason);
    return reason;
}

}  // namespace hark::whisper
