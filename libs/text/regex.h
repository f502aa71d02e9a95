// Regular expressions by PCRE2, replaced and split as Python's re does it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hark {

// What Python's re means by \s, as a class's inside: "[" HARK_RE_SPACES "]". PCRE2's own \s lacks
// U+001C to U+001F.
#define HARK_RE_SPACES                                                       \
    "\\x{9}-\\x{d}\\x{1c}-\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}" \
    "\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
// \b before and after a word. Spelt out: which marks are part of a word differs between Python
// and versions of PCRE2.
#define HARK_RE_BEGIN "(?<![\\p{L}\\p{N}_])"
#define HARK_RE_END "(?![\\p{L}\\p{N}_])"

class Regex {
  public:
    // Throws Error where the pattern does not compile.
    explicit Regex(const std::string& pattern);

    // groups[0] is the match, groups[n] the nth group; empty where it took no part.
    using Groups = std::vector<std::string_view>;
    using Replace = std::function<std::string(const Groups& groups)>;

    // re.sub: every match from left to right, none overlapping, replaced. `text` is valid UTF-8,
    // and the pattern never matches nothing.
    std::string replace(std::string_view text, const Replace& replacement) const;
    // `replacement` is literal except for \1 to \9.
    std::string replace(std::string_view text, std::string_view replacement) const;
    // re.fullmatch: whether the pattern takes all of the text.
    bool matches(std::string_view text) const;
    // Calls `f` with every match from left to right, none overlapping; the groups are views of
    // `text`.
    void for_each_match(std::string_view text,
                        const std::function<void(size_t begin, const Groups&)>& f) const;
    // re.split: the text between the matches.
    std::vector<std::string_view> split(std::string_view text) const;

  private:
    std::shared_ptr<const void> code_;  // pcre2_code
    uint32_t groups_ = 0;
};

}  // namespace hark
