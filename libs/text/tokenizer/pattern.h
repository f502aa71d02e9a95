// What a tokenizer's file splits or replaces by: a literal text or a regular expression as
// Oniguruma reads it, which the tokenizers library uses.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace hark {

class Pattern {
  public:
    static Pattern literal(std::string text);
    // Translated for PCRE2. Throws Error beginning with `where` if it does not compile, or has what
    // PCRE2 reads in another way: \w, nested classes, back references, inline options.
    static Pattern regex(const std::string& pattern, const std::string& where);
    // GPT-2's split, found without PCRE2. Its matches are the whole text.
    static Pattern gpt2();

    bool is_gpt2() const { return kind_ == Kind::gpt2; }

    // A place where the pattern is in a text, or the end of the matches.
    struct Match {
        size_t begin = 0, end = 0;
        bool found = false;
    };
    // Finds one match after another, from left to right, none overlapping. The pattern and the
    // text, which is valid UTF-8, must outlive it. It throws Error if a match takes too many steps.
    class Search {
      public:
        Search(const Pattern& pattern, std::string_view text);
        ~Search();
        Search(const Search&) = delete;
        Search& operator=(const Search&) = delete;
        Match next();

      private:
        struct Memory;
        Match next_regex();

        const Pattern& pattern_;
        std::string_view text_;
        size_t at_ = 0;
        bool last_was_empty_ = false;
        std::unique_ptr<Memory> memory_;
    };

  private:
    enum class Kind { literal, regex, gpt2 };

    Kind kind_ = Kind::literal;
    std::string text_;
    std::shared_ptr<const void> code_;  // pcre2_code
};

// GPT-2's pattern as tokenizer.json files spell it.
inline constexpr std::string_view kGpt2Pattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// An Oniguruma pattern as PCRE2 reads it. Throws Error as Pattern::regex does.
std::string pcre_from_oniguruma(std::string_view pattern, const std::string& where);

}  // namespace hark
