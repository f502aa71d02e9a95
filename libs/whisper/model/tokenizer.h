// Whisper's tokenizer: byte-level BPE and the special tokens, all read from the model's files.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "text/bpe.h"

namespace hark::whisper {

enum class Task { transcribe, translate };

// n_vocab of the published English-only models; the multilingual ones have more.
inline constexpr int64_t kEnglishVocab = 51864;

// Ids of the special tokens; -1 if the vocabulary lacks one.
struct SpecialTokens {
    int32_t eot = -1;  // <|endoftext|>
    int32_t sot = -1;  // <|startoftranscript|>
    int32_t translate = -1, transcribe = -1;
    int32_t sot_lm = -1;                       // <|startoflm|>
    int32_t sot_prev = -1;                     // <|startofprev|>
    int32_t no_speech = -1;                    // <|nospeech|>, <|nocaptions|> in older files
    int32_t no_timestamps = -1;                // <|notimestamps|>
    int32_t timestamp_begin = -1;              // <|0.00|>
    std::map<std::string, int32_t> languages;  // "en" -> its token
    bool multilingual = false;
};

// Finds the special tokens by their contents in the vocabulary, then by the keys of
// generation_config.json (`generation_json`, may be empty). Throws Error that begins with `where`
// and names the token if a required one is missing.
SpecialTokens find_special_tokens(const Bpe& bpe, const std::string& generation_json,
                                  int64_t n_vocab, const std::string& where);

class Tokenizer {
  public:
    // Reads DIR/tokenizer.json (or vocab.json and merges.txt) and DIR/generation_config.json.
    Tokenizer(const std::filesystem::path& directory, int64_t n_vocab);
    // Uses find_special_tokens(). Throws Error that begins with `where`.
    Tokenizer(Bpe bpe, const std::string& generation_json, int64_t n_vocab,
              const std::string& where);
    Tokenizer(Bpe bpe, SpecialTokens special) : bpe_(std::move(bpe)), special_(special) {}

    const SpecialTokens& special() const { return special_; }
    const Bpe& bpe() const { return bpe_; }

    std::vector<int32_t> encode(const std::string& text) const { return bpe_.encode(text); }
    // The text of the ids below <|0.00|>, special tokens included as in the reference. Always valid
    // UTF-8.
    std::string decode(std::span<const int32_t> ids) const;
    // The id of a text that is exactly one token. Throws Error otherwise.
    int32_t single(const std::string& text) const;

    // <|startoftranscript|>; multilingual models add the language and the task.
    std::vector<int32_t> sot_sequence(const std::string& language, Task task) const;
    // The language's token. Throws Error that names the nearest language of the model, or all codes
    // if none is near.
    int32_t language_token(const std::string& language) const;

    // Tokens that are not speech: brackets, notes, dashes, and the first of " -" and " '".
    // Source: openai/whisper tokenizer.py, non_speech_tokens.
    std::vector<int32_t> non_speech_tokens() const;

    // Text tokens whose whole text matches the pattern (PCRE2). Throws Error if the pattern does
    // not compile.
    std::vector<int32_t> matching_tokens(const std::string& pattern) const;

  private:
    Bpe bpe_;
    SpecialTokens special_;
};

// Appends the special tokens to a vocabulary that lists none, in the published models' order and
// with as many languages as n_vocab leaves room for. Throws Error that begins with `where` if they
// do not fit. Source: openai/whisper tokenizer.py, get_encoding.
Tokenizer official_tokenizer(Bpe ranks, int64_t n_vocab, const std::string& where);

// Opens --tokenizer: a directory (tokenizer.json, or vocab.json and merges.txt), a
// tokenizer.json, or a tiktoken rank file. Throws Error naming the file.
Tokenizer load_vocabulary(const std::filesystem::path& path, int64_t n_vocab);

}  // namespace hark::whisper
