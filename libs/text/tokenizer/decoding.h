// Ids back to text: tokenizer.json's decoder, and sentencepiece's.
// Sources: huggingface/tokenizers, tokenizers/src/decoders; sentencepiece_processor.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hark {

// A token as decoding sees it.
struct TokenText {
    std::string text;
    std::string first_text;  // where it is the first one, if that differs
    int16_t byte = -1;       // of <0xXX>, if bytes fall back
    bool used = false;
    bool special = false;
    bool strips = true;  // a space at its beginning may be taken off
};

struct DecodingRules {
    // What <0xXX> tokens become that are no UTF-8 together: each U+FFFD, or only invalid ones.
    enum class Bytes { none, all_or_nothing, each };

    Bytes bytes = Bytes::none;
    bool joined_by_spaces = false;         // a space between tokens: there is no decoder
    bool first_differs = false;            // TokenText::first_text counts
    std::string stripped = " ";            // the character taken off the text's beginning,
    size_t strips = 0;                     // this many times at most
    bool strips_first_token_only = false;  // sentencepiece's: if the text begins with that token
};

struct DecodingTable {
    std::vector<TokenText> tokens;  // by id
    DecodingRules rules;
};

// One text's ids, in parts. Text comes as soon as no later id can change it.
class TokenTextStream {
  public:
    TokenTextStream(const DecodingTable& table, bool with_specials)
        : table_(table), with_specials_(with_specials) {}

    // Appends what is certain now. Throws Error for an id that has no token.
    void push(int32_t id, std::string& out);
    // What is left; the next id begins another text.
    void finish(std::string& out);

  private:
    void put(std::string_view text, bool strips, std::string& out);
    void end_bytes(std::string& out);

    const DecodingTable& table_;
    bool with_specials_;
    bool first_ = true;
    size_t stripped_ = 0;
    bool strips_ = true;  // nothing but stripped characters has come
    std::string bytes_;   // of a run of <0xXX>
};

}  // namespace hark
