// What a vocabulary's files say, collected and then checked as a whole.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/bpe.h"

namespace hark {

// The bound on a tokenizer's file; the largest that is published has 20 MB.
inline constexpr size_t kMaxTokenizerFile = size_t{128} << 20;

// The text of a vocabulary's file, which may be a pipe; of a GGUF model its first bytes alone.
std::string read_vocabulary(const std::filesystem::path& file);
// The vocabulary in that, as Bpe::load() reads it; nullopt where it is of no kind that is known
// here.
std::optional<Bpe> parse_vocabulary(const std::string& text, const std::filesystem::path& file);

// Every function throws Error beginning with `where`, the file's name, where something is wrong.
class BpeBuilder {
  public:
    explicit BpeBuilder(std::string where) : where_(std::move(where)) {}

    // A token of the vocabulary, spelt in the byte alphabet.
    void token(const std::string& spelling, int32_t id);
    // The next merge in the order of ranks.
    void merge(const std::string& left, const std::string& right, const std::string& where);
    // The same from "left right".
    void merge(std::string_view pair, const std::string& where);
    // `content` becomes an added token; `special` ones give no text when decoded.
    void added(const std::string& content, int32_t id, bool special);
    // Makes special what the vocabulary holds already; other names are passed over.
    void special(const std::string& content);

    // prefix_space: text is read as if a space preceded it. ignore_merges: a word that is a
    // token is that token, whatever the merges make of it.
    Bpe finish(bool prefix_space, bool ignore_merges);

    // The vocabulary of a rank file, from bytes to ranks.
    static Bpe ranked(const std::unordered_map<std::string, int32_t>& ranks,
                      const std::string& where);

  private:
    struct Added {
        std::string content;
        int32_t id;
        bool special;
    };

    int32_t id_of(const std::string& token, const std::string& where) const;
    void size_table(Bpe& bpe) const;
    void place_added(Bpe& bpe) const;
    void place_bytes(Bpe& bpe) const;

    std::string where_;
    std::unordered_map<std::string, int32_t> ids_;
    std::unordered_map<uint64_t, PairTable::Merge> merges_;
    std::vector<int32_t> made_;  // ids that a merge makes
    std::vector<Added> added_;
};

}  // namespace hark
