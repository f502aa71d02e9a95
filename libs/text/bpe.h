// Byte-level byte-pair encoding, as GPT-2 and Whisper use it.
// Source: Sennrich et al. 2016, algorithm 1; openai/gpt-2 src/encoder.py for the byte alphabet.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/pair_table.h"

namespace hark {

class GgufFile;

class Bpe {
  public:
    // Reads a Hugging Face directory: tokenizer.json, or without it vocab.json and
    // merges.txt with added_tokens.json and special_tokens_map.json if present. Throws Error naming
    // the file, what was expected and what was found.
    static Bpe from_directory(const std::filesystem::path& directory);
    // Reads a tiktoken rank file: a line is a token in base64, a space, its rank, which is its id
    // and its place in the order of merges. Special tokens are not in it: see add_special.
    static Bpe from_tiktoken(const std::filesystem::path& file);

    // The vocabulary of a GGUF model: its tokens, their types and merges. Throws Error naming the
    // file: a tokenizer of another kind, a key that is missing, a merge of what is no token.
    static Bpe from_gguf(const GgufFile& file);
    // Reads whatever holds a vocabulary: what from_directory reads, a tokenizer.json alone, a
    // tiktoken rank file (with <|endoftext|> after its ranks), llm.c's tokenizer.bin, a GGUF
    // model.
    static Bpe load(const std::filesystem::path& path);

    // The same from text that has been read; `where` names it in messages.
    static Bpe parse_tokenizer_json(std::string_view text, const std::string& where);
    static Bpe parse_vocab_and_merges(std::string_view vocab, const std::string& vocab_where,
                                      std::string_view merges, const std::string& merges_where);
    static Bpe parse_tiktoken(std::string_view text, const std::string& where);
    static Bpe parse_llmc(std::string_view bytes, const std::string& where);

    // The tokens of a vocabulary in the order of their ids, spelt in the byte alphabet, without
    // merges: two tokens join where that makes a token, the one of the smaller id first, as in a
    // rank file. From <|endoftext|> on they are special.
    static Bpe from_token_list(std::span<const std::string> tokens, const std::string& where);

    // The ids of the text, equal to the tokenizers library's. Text that looks like a special token
    // is text. Invalid UTF-8 is seen as U+FFFD, as Python decodes it with errors="replace".
    std::vector<int32_t> encode(std::string_view text) const;

    // The tokens' bytes, which need not be whole code points (Utf8Stream makes them so). Special
    // tokens give nothing, or their content with `with_specials`. Throws Error for an unknown id.
    std::string decode(std::span<const int32_t> ids, bool with_specials = false) const;

    // A token's bytes, a special token's content. Throws Error for an id that has no token.
    const std::string& bytes_of(int32_t id) const;

    // Whether an id below vocab_size() has a token.
    bool has(int32_t id) const { return tokens_[static_cast<size_t>(id)].used; }
    // The pairs of tokens that merge, those before others that merge before them.
    std::vector<std::pair<int32_t, int32_t>> merges() const;
    const PairTable& merge_table() const { return merges_; }
    // Whether text is read as if a space preceded it.
    bool prefix_space() const { return prefix_space_; }
    // Whether a word that is a token is that token, whatever the merges make of it.
    bool ignores_merges() const { return !words_.empty(); }

    // The id of a special token by its content, "<|endoftext|>"; nullopt where the files had none.
    std::optional<int32_t> special(const std::string& content) const;
    bool is_special(int32_t id) const;
    // All special tokens, by content.
    const std::map<std::string, int32_t>& specials() const { return specials_; }
    // Makes `content` a special token. Throws Error where its id or content is another token's.
    void add_special(const std::string& content, int32_t id);

    // One more than the largest id. A model's table may be larger: it is often padded.
    int32_t vocab_size() const { return static_cast<int32_t>(tokens_.size()); }

  private:
    friend class BpeBuilder;
    friend class BpeEncoder;

    struct Token {
        std::string bytes;
        bool used = false;
        bool special = false;
    };
    Bpe() = default;

    std::vector<Token> tokens_;            // by id
    std::array<int32_t, 256> byte_ids_{};  // a byte's own token
    PairTable merges_;
    std::unordered_map<std::string, int32_t>
        words_;  // whole words that are tokens before any merge
    std::map<std::string, int32_t> specials_;
    bool prefix_space_ = false;  // the text is read as if a space preceded it
};

}  // namespace hark
