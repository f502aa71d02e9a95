#include "text/tokens/token_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "core/files/files.h"
#include "text/token_file.h"

namespace hark {
namespace {

namespace fs = std::filesystem;

// Whether a header can be written after the ids that follow it: not on a pipe, nor with O_APPEND.
bool can_patch(int fd) {
    struct stat info {};
    return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && ::lseek(fd, 0, SEEK_CUR) >= 0 &&
           (::fcntl(fd, F_GETFL) & O_APPEND) == 0;
}

// stdout. If it cannot be patched, a file without a name takes all first.
class StdoutSink : public TokenSink {
  public:
    explicit StdoutSink(int id_bytes)
        : spool_(can_patch(STDOUT_FILENO) ? -1 : make_unlinked_file()),
          writer_(spool_ >= 0 ? spool_ : STDOUT_FILENO,
                  spool_ >= 0 ? "the temporary file" : "stdout", id_bytes) {}
    ~StdoutSink() override {
        if (spool_ >= 0) ::close(spool_);
    }
    StdoutSink(const StdoutSink&) = delete;

    void write(std::span<const int32_t> ids) override { writer_.write(ids); }
    void finish() override {
        writer_.finish();
        if (spool_ < 0) return;
        require(::lseek(spool_, 0, SEEK_SET) == 0, "the temporary file: cannot seek");
        ByteReader in(spool_, "the temporary file");
        ByteWriter out(STDOUT_FILENO, "stdout");
        std::vector<char> piece(size_t{1} << 20);
        while (size_t got = in.read_some(piece.data(), piece.size())) out.write(piece.data(), got);
        out.flush();
    }

  private:
    int spool_;
    TokenWriter writer_;
};

class NamedFileSink : public TokenSink {
  public:
    NamedFileSink(const fs::path& path, int id_bytes)
        : file_(path), writer_(file_.fd(), file_.name(), id_bytes) {}

    void write(std::span<const int32_t> ids) override { writer_.write(ids); }
    void finish() override {
        writer_.finish();
        file_.commit();
    }

  private:
    AtomicFile file_;
    TokenWriter writer_;
};

// DIRECTORY/NAME_000000.bin and so on; a file has its name once it is whole.
class ShardSink : public TokenSink {
  public:
    ShardSink(const TokenOutputOptions& options, int id_bytes)
        : options_(options), id_bytes_(id_bytes) {
        std::error_code failed;
        fs::create_directories(options_.directory, failed);
        require(fs::is_directory(options_.directory), options_.directory,
                ": cannot make this directory: ", failed.message());
        // The last shards of a longer run would be read together with the new ones.
        for (const auto& entry : fs::directory_iterator(options_.directory))
            require(!is_shard(entry.path().filename().string()), entry.path().string(),
                    ": a shard of an earlier run; remove its shards, or choose another ",
                    "--shard-name");
    }

    void write(std::span<const int32_t> ids) override {
        while (!ids.empty()) {
            if (!shard_) shard_.emplace(path_of(index_), id_bytes_);
            const auto room = static_cast<size_t>(options_.shard_tokens - filled_);
            const auto part = ids.first(std::min(ids.size(), room));
            shard_->write(part);
            filled_ += static_cast<int64_t>(part.size());
            ids = ids.subspan(part.size());
            if (filled_ == options_.shard_tokens) finish();
        }
    }
    void finish() override {
        if (!shard_) return;
        shard_->finish();
        shard_.reset();
        ++index_;
        filled_ = 0;
    }

  private:
    fs::path path_of(int index) const {
        char number[16];
        std::snprintf(number, sizeof number, "_%06d", index);
        return fs::path(options_.directory) / (options_.shard_name + number + ".bin");
    }
    bool is_shard(std::string name) const {
        if (!name.starts_with(options_.shard_name + "_") || !name.ends_with(".bin")) return false;
        name = name.substr(options_.shard_name.size() + 1);
        name.resize(name.size() - 4);
        return name.size() >= 6 && name.find_first_not_of("0123456789") == name.npos;
    }

    TokenOutputOptions options_;
    int id_bytes_;
    std::optional<NamedFileSink> shard_;
    int index_ = 0;
    int64_t filled_ = 0;  // of the shard that is being written
};

// One line per document.
class IdsTextSink : public TokenSink {
  public:
    void write(std::span<const int32_t> ids) override {
        for (int32_t id : ids) {
            char text[16];
            char* begin = text;
            if (!at_start_) *begin++ = ' ';
            const auto end = std::to_chars(begin, text + sizeof text, id).ptr;
            out_.write(text, static_cast<size_t>(end - text));
            at_start_ = false;
        }
    }
    void end_document() override {
        out_.write("\n");
        at_start_ = true;
    }
    void finish() override { out_.flush(); }

  private:
    ByteWriter out_{STDOUT_FILENO, "stdout"};
    bool at_start_ = true;  // of a line
};

// Writes every hold_out_every-th block of tokens to a file of its own.
class ValidationSplitSink : public TokenSink {
  public:
    ValidationSplitSink(std::unique_ptr<TokenSink> rest, const TokenOutputOptions& options,
                        int id_bytes, Console& console)
        : rest_(std::move(rest)),
          console_(console),
          held_out_(options.val, id_bytes),
          block_(options.val_block),
          every_(options.hold_out_every) {}

    void write(std::span<const int32_t> ids) override {
        while (!ids.empty()) {
            const auto room = static_cast<size_t>(block_ - at_ % block_);
            const auto part = ids.first(std::min(ids.size(), room));
            const bool held_out = at_ / block_ % every_ == every_ - 1;
            held_out ? held_out_.write(part) : rest_->write(part);
            at_ += static_cast<int64_t>(part.size());
            ids = ids.subspan(part.size());
        }
    }
    void finish() override {
        rest_->finish();
        held_out_.finish();
        const int64_t before = block_ * (every_ - 1);
        if (at_ <= before)
            console_.warning(
                concat("--val-output: nothing is held out (got ", at_,
                       " tokens, the first held-out block begins after ", before,
                       "); use more text, or a smaller --val-block or --hold-out-every"));
    }

  private:
    std::unique_ptr<TokenSink> rest_;
    Console& console_;
    NamedFileSink held_out_;
    int64_t block_, every_;
    int64_t at_ = 0;  // tokens so far
};

}  // namespace

void TokenOutputOptions::flags(Flags& flags) {
    flags.add("format,f", format, {"tokens", "ids"}, "FORM format of the output")
        .essential()
        .own_variable()
        .details("tokens: a token file in llm.c's format; ids: text, one line per document.");
    flags.add_name("output-dir,o", directory, "DIR folder for shards, or for the trained tokenizer")
        .essential()
        .completes(Completes::directory)
        .details(
            "The shards are NAME_000000.bin, NAME_000001.bin and so on. Without it one token "
            "file is written to stdout.");
    flags.add("shard-tokens", shard_tokens, "N tokens per shard", 1, kMaxFileTokens);
    flags.add("shard-name", shard_name, "NAME of the shards");
    flags.add_name("val-output", val, "FILE file for tokens held out for validation")
        .essential()
        .completes(Completes::file);
    flags.add("val-block", val_block, "N tokens per held-out block", 1, kMaxFileTokens);
    flags.add("hold-out-every", hold_out_every, "N hold out every N-th block", 2, 1'000'000);
}

void TokenOutputOptions::check() const {
    require_usage(!shard_name.empty() && shard_name.find('/') == shard_name.npos,
                  "--shard-name: expected a file's name, got '", shard_name, "'");
    if (format == "ids") {
        require_usage(directory.empty(), "--output-dir: --format ids is written to stdout");
        require_usage(val.empty(), "--val-output: --format ids holds nothing out");
    } else if (directory.empty()) {
        require_not_terminal("a token file");
    }
}

std::unique_ptr<TokenSink> make_token_sink(const TokenOutputOptions& options, int32_t vocab_size,
                                           Console& console) {
    if (options.format == "ids") return std::make_unique<IdsTextSink>();
    const int id_bytes = id_bytes_for(vocab_size);
    std::unique_ptr<TokenSink> sink;
    if (options.directory.empty())
        sink = std::make_unique<StdoutSink>(id_bytes);
    else
        sink = std::make_unique<ShardSink>(options, id_bytes);
    if (options.val.empty()) return sink;
    return std::make_unique<ValidationSplitSink>(std::move(sink), options, id_bytes, console);
}

}  // namespace hark
