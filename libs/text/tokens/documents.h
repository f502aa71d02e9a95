// Texts cut into documents, and long documents into parts that can be encoded side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cli/cli.h"
#include "core/files/io.h"

namespace hark {

struct DocumentOptions {
    bool split = false;           // <|endoftext|>, written out, separates documents
    std::string format = "text";  // or jsonl: each line is an object with a string named `key`
    std::string key = "text";

    void flags(Flags& flags);
    // Throws UsageError if the options contradict each other.
    void check() const;
    bool jsonl() const { return format == "jsonl"; }
};

// The separator of documents in text that is read and written.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

// A piece of the input.
struct TextBlock {
    struct Part {
        size_t begin, end;  // in the block's text
        bool begins, ends;  // the document; never both of an empty part
    };
    std::string text;
    std::vector<Part> parts;
    // Lines of JSON, whose documents read_json_lines() finds: the first one's number and the name
    // of their input. 0: the parts are there.
    size_t first_line = 0;
    std::string source;

    std::string_view text_of(const Part& part) const {
        return std::string_view(text).substr(part.begin, part.end - part.begin);
    }
};

// Makes of a block of JSON lines one of their texts, a document each. What is wrong with a line
// goes to `problems`, and the others are read all the same. Leaves other blocks as they are.
void read_json_lines(TextBlock& block, const std::string& key, std::vector<std::string>& problems);

// Reads one input block by block. Empty documents are left out.
class DocumentReader {
  public:
    // The last place where a text that continues may be cut; 0: nowhere. A block grows beyond
    // `block_bytes` until there is such a place, or a line of JSON has ended.
    using LastCut = std::function<size_t(std::string_view)>;
    DocumentReader(ByteReader& in, const DocumentOptions& options, LastCut last_cut,
                   size_t block_bytes = kBlockBytes);
    static constexpr size_t kBlockBytes = size_t{1} << 20;
    // The most text without a place to cut; a sentencepiece tokenizer takes each document whole.
    static constexpr size_t kMaxUncutBytes = size_t{1} << 30;

    // Returns nullopt at the end of the input. Throws Error if a line of JSON is longer than
    // kMaxLineBytes (text/lines.h), a text has no place to cut it in kMaxUncutBytes, or a zero
    // byte at its beginning shows that it is no text.
    std::optional<TextBlock> next();
    // Ends the document that a broken input left open, if it did.
    std::optional<TextBlock> close();
    // Whether no byte of the input has come.
    bool empty() const { return empty_; }

  private:
    void fill(size_t target);
    void add(TextBlock& block, size_t begin, size_t end, bool ends);
    size_t take_lines(TextBlock& block);
    size_t take_parts(TextBlock& block);

    ByteReader& in_;
    const DocumentOptions& options_;
    LastCut last_cut_;
    size_t block_bytes_;
    std::string held_;          // read and not yet returned
    bool ended_ = false;        // the input
    bool empty_ = true;         // the input, so far
    bool examined_ = false;     // for being text
    bool in_document_ = false;  // its beginning was returned, its end was not
    size_t line_ = 1;
};

// Several inputs, one after another.
class DocumentReaders {
  public:
    using Problem = std::function<void(const std::string&)>;
    // "-" is standard input, and so is no path at all. If an input cannot be read, `problem` gets
    // the error and the next input is read; `warning` gets an input without a byte,
    // and of one that is not UTF-8 where.
    DocumentReaders(std::vector<std::string> paths, const DocumentOptions& options,
                    DocumentReader::LastCut last_cut, Problem problem, Problem warning);
    ~DocumentReaders();

    // Returns nullopt after the last input. Throws Error if no input has a byte.
    std::optional<TextBlock> next();

  private:
    struct Input;

    std::vector<std::string> paths_;
    const DocumentOptions& options_;
    DocumentReader::LastCut last_cut_;
    Problem problem_, warning_;
    size_t current_ = 0;     // of the paths
    bool all_empty_ = true;  // no input so far has a byte or an error
    std::unique_ptr<Input> input_;
};

// A file for reading, or standard input for "-". Throws Error where it cannot be opened.
class InputFile {
  public:
    explicit InputFile(const std::string& path);
    ~InputFile();
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    ByteReader& bytes() { return bytes_; }

  private:
    int fd_;
    ByteReader bytes_;
};

}  // namespace hark
