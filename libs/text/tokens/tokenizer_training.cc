#include "text/tokens/tokenizer_training.h"

#include <filesystem>

#include "core/error.h"
#include "core/files/files.h"
#include "core/profile/profile.h"
#include "text/bpe_builder.h"
#include "text/bpe_writer.h"
#include "text/byte_alphabet.h"
#include "text/split.h"
#include "text/tokens/sentencepiece.h"

namespace hark {
namespace {

namespace fs = std::filesystem;

// The parts of all documents, one after another.
class Texts {
  public:
    Texts(const std::vector<std::string>& paths, const DocumentOptions& options,
          DocumentReader::LastCut last_cut, Console& console)
        : options_(options),
          console_(console),
          readers_(
              paths, options, std::move(last_cut),
              [&console](const std::string& problem) { console.error(problem); },
              [&console](const std::string& warning) { console.warning(warning); }) {}

    // Moves to the next part; false at the end.
    bool next() {
        while (!block_ || next_ == block_->parts.size()) {
            block_ = readers_.next();
            if (!block_) return false;
            next_ = 0;
            std::vector<std::string> problems;
            read_json_lines(*block_, options_.key, problems);
            for (const std::string& problem : problems) console_.error(problem);
        }
        ++next_;
        return true;
    }
    std::string_view text() const { return block_->text_of(block_->parts[next_ - 1]); }

  private:
    const DocumentOptions& options_;
    Console& console_;
    DocumentReaders readers_;
    std::optional<TextBlock> block_;
    size_t next_ = 0;  // of its parts
};

void train_bytes(const TrainingOptions& options, Texts& texts, const std::string& directory,
                 Console& console) {
    BpeTrainer trainer;
    bool any = false;
    while (texts.next()) {
        trainer.add(texts.text());
        any = true;
    }
    if (!any && console.failed()) return;  // what is wrong with the files has been said
    require(any, "no text to train a tokenizer on: all documents are empty");
    const BpeVocabulary vocabulary = trainer.train(static_cast<int32_t>(options.vocab_size));
    if (vocabulary.tokens.size() < static_cast<size_t>(options.vocab_size))
        console.warning(concat("the text has pairs for ", vocabulary.tokens.size(),
                               " tokens only (expected ", options.vocab_size, ")"));
    write_hugging_face(vocabulary, directory);
}

void train_pieces(const TrainingOptions& options, Texts& texts, const std::string& directory) {
    std::string_view rest;
    // The next line that is not empty.
    const auto next = [&]() -> std::optional<std::string> {
        for (;;) {
            while (rest.empty()) {
                if (!texts.next()) return std::nullopt;
                rest = texts.text();
            }
            const std::string_view line = rest.substr(0, rest.find('\n'));
            rest.remove_prefix(std::min(line.size() + 1, rest.size()));
            if (!line.empty()) return std::string(line);
        }
    };
    const std::string model =
        train_sentencepiece({options.kind, static_cast<int32_t>(options.vocab_size)}, next);
    write_file(fs::path(directory) / "tokenizer.model", model);
}

}  // namespace

void TrainingOptions::flags(Flags& flags) {
    flags.add_switch("train-tokenizer", on, "train a tokenizer on the text, into --output-dir")
        .essential();
    flags.add("vocab-size", vocab_size, "N tokens of the trained tokenizer", 0, 1'000'000)
        .essential()
        .own_variable()
        .details("Of the kind bytes, N counts the 256 bytes; <|endoftext|> is one more.");
    flags.add("train-kind", kind, {"bytes", "unigram", "bpe"}, "KIND of the trained tokenizer")
        .details("bytes: byte-level BPE, as GPT-2's; unigram, bpe: a sentencepiece model.");
}

void TrainingOptions::check() const {
    require_usage(on || vocab_size == 0, "--vocab-size needs --train-tokenizer");
    require_usage(!on || vocab_size > 0, "--train-tokenizer needs --vocab-size N");
    require_usage(!on || kind != "bytes" || vocab_size >= 256,
                  "--vocab-size: expected at least the 256 bytes, got ", vocab_size);
}

void train_tokenizer(const TrainingOptions& options, const DocumentOptions& documents,
                     const std::vector<std::string>& paths, const std::string& directory,
                     Console& console) {
    std::error_code failed;
    fs::create_directories(directory, failed);
    require(fs::is_directory(directory), directory,
            ": cannot make this directory: ", failed.message());
    const bool bytes = options.kind == "bytes";
    Texts texts(
        paths, documents,
        [bytes](std::string_view text) {
            return bytes ? last_word_cut(text) : text.rfind('\n') + 1;
        },
        console);
    const ProfileSpan span("train");
    if (bytes)
        train_bytes(options, texts, directory, console);
    else
        train_pieces(options, texts, directory);
}

void write_hugging_face(const BpeVocabulary& vocabulary, const std::string& directory) {
    BpeBuilder builder(directory);
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
        builder.token(spell_bytes(vocabulary.tokens[id]), static_cast<int32_t>(id));
    for (const auto& [left, right] : vocabulary.merges)
        builder.merge(spell_bytes(vocabulary.tokens[left]), spell_bytes(vocabulary.tokens[right]),
                      directory);
    builder.added(std::string(kEndOfText), static_cast<int32_t>(vocabulary.tokens.size()), true);
    write_hugging_face(builder.finish(false, false), "GPT2TokenizerFast", directory);
}

}  // namespace hark
