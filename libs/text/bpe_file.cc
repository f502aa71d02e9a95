// A vocabulary by the kind of file at a path.
#include <algorithm>
#include <cctype>
#include <cstring>

#include "core/error.h"
#include "core/files/files.h"
#include "formats/gguf.h"
#include "text/bpe_builder.h"

namespace hark {
namespace {

// llm.c's files begin with an int32: its tokenizers', its models'.
constexpr int32_t kLlmcTokenizer = 20240328, kLlmcModel = 20240326;

bool begins_with(std::string_view text, int32_t number) {
    int32_t first = 0;
    if (text.size() < sizeof first) return false;
    std::memcpy(&first, text.data(), sizeof first);
    return first == number;
}

bool is_rank_file(std::string_view text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const size_t space = line.find(' ');
    return space != line.npos && space + 1 < line.size() &&
           std::all_of(line.begin(), line.begin() + static_cast<ptrdiff_t>(space),
                       [](unsigned char c) {
                           return std::isalnum(c) || c == '+' || c == '/' || c == '=';
                       }) &&
           std::all_of(line.begin() + static_cast<ptrdiff_t>(space) + 1, line.end(),
                       [](unsigned char c) { return std::isdigit(c) || c == '\r'; });
}

// A rank file does not say by which pattern its text is split; ours is GPT-2's.
Bpe read_ranks(std::string_view text, const std::string& where) {
    Bpe bpe = Bpe::parse_tiktoken(text, where);
    for (const auto& [ranks, name] :
         {std::pair(100'256, "cl100k_base"), {128'000, "Llama 3"}, {199'998, "o200k_base"}})
        require(bpe.vocab_size() != ranks, where, ": found ", ranks, " ranks, those of ", name,
                ", whose text is not split by GPT-2's pattern, the only one that is known here");
    bpe.add_special("<|endoftext|>", bpe.vocab_size());
    return bpe;
}

}  // namespace

// Source: llm.c train_gpt2.py (write_tokenizer) and llmc/tokenizer.h. An id is a rank, as in
// GPT-2's rank file; version 1 does not say which one ends texts: GPT-2's does.
Bpe Bpe::parse_llmc(std::string_view bytes, const std::string& where) {
    constexpr size_t kHeaderBytes = 1024;
    uint32_t fields[4] = {};
    require(bytes.size() >= kHeaderBytes, where, ": expected a header of ", kHeaderBytes,
            " bytes, found ", bytes.size(), " bytes in all");
    std::memcpy(fields, bytes.data(), sizeof fields);
    const auto [magic, version, count, end_field] = fields;
    require(begins_with(bytes, kLlmcTokenizer), where,
            ": expected llm.c's tokenizer, which begins ", "with ", kLlmcTokenizer, ", found ",
            magic);
    require(version == 1 || version == 2, where, ": expected version 1 or 2, found ", version);
    const uint32_t end = version == 1 ? 50256 : end_field;
    require(end < count, where, ": expected the end-of-text token among ", count, " tokens, found ",
            end);
    std::unordered_map<std::string, int32_t> ranks;
    std::string end_of_text;
    size_t at = kHeaderBytes;
    for (uint32_t id = 0; id < count; ++id) {
        const size_t length = at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
        require(at < bytes.size() && length < bytes.size() - at, where, ": expected ", count,
                " tokens, found the file's end in token ", id);
        const std::string token(bytes.substr(at + 1, length));
        at += 1 + length;
        if (id == end)
            end_of_text = token;
        else
            require(ranks.emplace(token, id).second, where, ": token ", id, " is there twice");
    }
    require(at == bytes.size(), where, ": expected ", count, " tokens in ", at, " bytes, found ",
            bytes.size());
    Bpe bpe = BpeBuilder::ranked(ranks, where);
    bpe.add_special(end_of_text, static_cast<int32_t>(end));
    return bpe;
}

std::string read_vocabulary(const std::filesystem::path& file) {
    const std::string begin = first_bytes(file, 4);
    require(!begins_with(begin, kLlmcModel), file.string(),
            ": llm.c's models carry no tokenizer; give one with --tokenizer PATH");
    return begin == kGgufMagic ? begin : read_file(file, kMaxTokenizerFile);
}

std::optional<Bpe> parse_vocabulary(const std::string& text, const std::filesystem::path& file) {
    const std::string where = file.string();
    if (text == kGgufMagic) return Bpe::from_gguf(GgufFile(file));
    if (text.starts_with('{')) return Bpe::parse_tokenizer_json(text, where);
    if (begins_with(text, kLlmcTokenizer)) return Bpe::parse_llmc(text, where);
    if (is_rank_file(text)) return read_ranks(text, where);
    return std::nullopt;
}

Bpe Bpe::load(const std::filesystem::path& path) {
    if (std::filesystem::is_directory(path)) return from_directory(path);
    std::optional<Bpe> bpe = parse_vocabulary(read_vocabulary(path), path);
    require(bpe.has_value(), path.string(),
            ": expected a vocabulary of byte-level BPE: a directory ",
            "with tokenizer.json or vocab.json and merges.txt, a tokenizer.json, a tiktoken rank ",
            "file, llm.c's tokenizer.bin or a GGUF model; found none of them");
    return std::move(*bpe);
}

}  // namespace hark
