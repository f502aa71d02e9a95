#include "text/tokens/documents.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/json/json.h"
#include "text/line_reader.h"
#include "text/lines.h"

namespace hark {
namespace {

// Throws Error where the line has no such text.
std::string text_of_line(std::string_view line, const std::string& key, const std::string& where) {
    const nlohmann::json root = parse_json_object(line, where);
    const auto found = root.find(key);
    require(found != root.end() && found->is_string(), where, ": expected a string named ", key,
            ", found ", found == root.end() ? "none" : found->type_name());
    return found->get<std::string>();
}

}  // namespace

void DocumentOptions::flags(Flags& flags) {
    flags.section("Input");
    flags.add("input-format", format, {"text", "jsonl"}, "FORM format of the input")
        .essential()
        .own_variable()
        .details("jsonl: each line is an object, and its string --key a document.");
    flags.add("key", key, "NAME of the text in an object of jsonl");
    flags.add_switch("split-documents", split, "<|endoftext|> in the text ends a document");
}

void DocumentOptions::check() const {
    require_usage(!split || !jsonl(),
                  "--split-documents and --input-format jsonl contradict each "
                  "other; leave one out");
}

void read_json_lines(TextBlock& block, const std::string& key, std::vector<std::string>& problems) {
    if (block.first_line == 0) return;
    std::string texts;
    for_each_line(block.text, [&](std::string_view line, size_t number) {
        if (line.find_first_not_of(" \t") == line.npos) return;
        try {
            const std::string where =
                concat(block.source, ": line ", block.first_line + number - 1);
            const size_t begin = texts.size();
            texts += text_of_line(line, key, where);
            if (texts.size() > begin) block.parts.push_back({begin, texts.size(), true, true});
        } catch (const Error& wrong) {
            problems.push_back(wrong.what());
        }
    });
    block.text = std::move(texts);
    block.first_line = 0;
}

DocumentReader::DocumentReader(ByteReader& in, const DocumentOptions& options, LastCut last_cut,
                               size_t block_bytes)
    : in_(in), options_(options), last_cut_(std::move(last_cut)), block_bytes_(block_bytes) {}

void DocumentReader::fill(size_t target) {
    while (!ended_ && held_.size() < target) {
        const size_t have = held_.size();
        held_.resize(target);
        const size_t got = in_.read_some(held_.data() + have, target - have);
        held_.resize(have + got);
        ended_ = got == 0;
        empty_ = empty_ && got == 0;
    }
}

std::optional<TextBlock> DocumentReader::next() {
    for (size_t target = block_bytes_;;) {
        fill(target);
        if (!std::exchange(examined_, true)) require_text(held_, in_.name());
        if (held_.empty()) return close();
        TextBlock block;
        const size_t taken = options_.jsonl() ? take_lines(block) : take_parts(block);
        if (taken == 0) {  // nothing can be cut off yet
            require(!options_.jsonl() || held_.size() <= kMaxLineBytes, in_.name(), ": line ",
                    line_, ": the line is longer than ", kMaxLineBytes >> 20, " MiB");
            require(held_.size() <= kMaxUncutBytes, in_.name(), ": found no place to cut ",
                    kMaxUncutBytes >> 20, " MiB of text; split the file");
            target = std::min(2 * std::max(target, held_.size()),
                              (options_.jsonl() ? kMaxLineBytes : kMaxUncutBytes) + 1);
            continue;
        }
        block.text = std::move(held_);
        held_ = block.text.substr(taken);
        block.text.resize(taken);
        if (options_.jsonl() || !block.parts.empty()) return block;
        target = block_bytes_;
    }
}

std::optional<TextBlock> DocumentReader::close() {
    if (!in_document_) return std::nullopt;
    in_document_ = false;
    TextBlock block;
    block.parts.push_back({0, 0, false, true});
    return block;
}

void DocumentReader::add(TextBlock& block, size_t begin, size_t end, bool ends) {
    if (begin == end && !(ends && in_document_)) return;
    block.parts.push_back({begin, end, !in_document_, ends});
    in_document_ = !ends;
}

// Whole lines; the input's end ends the last one.
size_t DocumentReader::take_lines(TextBlock& block) {
    const size_t taken = ended_ ? held_.size() : held_.rfind('\n') + 1;
    block.first_line = line_;
    block.source = in_.name();
    line_ += static_cast<size_t>(
        std::count(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(taken), '\n'));
    return taken;
}

size_t DocumentReader::take_parts(TextBlock& block) {
    size_t at = 0;
    if (options_.split) {
        for (size_t end; (end = held_.find(kEndOfText, at)) != held_.npos;) {
            add(block, at, end, true);
            at = end + kEndOfText.size();
        }
    }
    std::string_view rest = std::string_view(held_).substr(at);
    if (ended_) {
        add(block, at, held_.size(), true);
        return held_.size();
    }
    // The beginning of a separator may be at the end.
    if (options_.split) rest.remove_suffix(std::min(rest.size(), kEndOfText.size() - 1));
    const size_t cut = last_cut_(rest);
    add(block, at, at + cut, false);
    return at + cut;
}

InputFile::InputFile(const std::string& path)
    : fd_(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
      bytes_(fd_, path == "-" ? "stdin" : path) {
    require(fd_ >= 0, path, ": cannot open: ", std::strerror(errno));
}

InputFile::~InputFile() {
    if (fd_ != STDIN_FILENO) ::close(fd_);
}

struct DocumentReaders::Input {
    Input(const std::string& path, const DocumentOptions& options,
          const DocumentReader::LastCut& last_cut, const Utf8Check::Warn& warn)
        : file(path), documents(file.bytes(), options, last_cut), utf8(warn) {}

    std::optional<TextBlock> next() {
        std::optional<TextBlock> block = documents.next();
        // A line of JSON that is not UTF-8 is an error of its own.
        if (!block || block->first_line > 0) return block;
        utf8.look(block->text, file.bytes().name(), line);
        line += std::count(block->text.begin(), block->text.end(), '\n');
        return block;
    }

    InputFile file;
    DocumentReader documents;
    Utf8Check utf8;
    int64_t line = 1;
};

DocumentReaders::DocumentReaders(std::vector<std::string> paths, const DocumentOptions& options,
                                 DocumentReader::LastCut last_cut, Problem problem, Problem warning)
    : paths_(std::move(paths)),
      options_(options),
      last_cut_(std::move(last_cut)),
      problem_(std::move(problem)),
      warning_(std::move(warning)) {
    if (paths_.empty()) paths_.push_back("-");
}

DocumentReaders::~DocumentReaders() = default;

std::optional<TextBlock> DocumentReaders::next() {
    while (current_ < paths_.size()) {
        std::optional<TextBlock> block;
        try {
            if (!input_)
                input_ = std::make_unique<Input>(paths_[current_], options_, last_cut_, warning_);
            block = input_->next();
            if (block) return block;
            if (!input_->documents.empty())
                all_empty_ = false;
            else if (paths_.size() > 1)
                warning_(paths_[current_] == "-" ? "no text on stdin"
                                                 : paths_[current_] + ": the file is empty");
        } catch (const Error& wrong) {
            all_empty_ = false;
            problem_(wrong.what());
            if (input_) block = input_->documents.close();
        }
        input_.reset();
        ++current_;
        if (block) return block;
    }
    // Most often the command before the pipe has failed.
    require(!all_empty_, "no text ",
            paths_.size() > 1       ? "in any of the files"
            : paths_.front() == "-" ? "on stdin"
                                    : "in " + paths_.front());
    return std::nullopt;
}

}  // namespace hark
