// Oniguruma's patterns in PCRE2's words, for what the two read in different ways.
// Sources: Oniguruma doc/RE (Ruby syntax); pcre2pattern(3).
#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "text/tokenizer/pattern.h"

namespace hark {
namespace {

// Unicode's White_Space. PCRE2's own \s has U+180E too.
constexpr std::string_view kSpaces =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";

class Translation {
  public:
    Translation(std::string_view pattern, const std::string& where)
        : pattern_(pattern), where_(where) {}

    std::string result() {
        while (at_ < pattern_.size()) {
            const char c = pattern_[at_];
            if (c == '\\')
                escape();
            else if (c == '[')
                in_class_ ? refuse("a class inside a class") : open_class();
            else if (c == ']' && in_class_)
                in_class_ = false, copy(1);
            else if (in_class_)
                starts_with("&&") ? refuse("an intersection of classes") : copy(1);
            else if (c == '(' && starts_with("(?"))
                group();
            else if (c == '}')
                interval_end();
            else
                copy(1);
        }
        return std::move(out_);
    }

  private:
    [[noreturn]] void refuse(const std::string& what) const {
        fail(where_, ": ", what, " is not supported in the pattern '", pattern_, "'");
    }
    bool starts_with(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
    void copy(size_t bytes) {
        out_ += pattern_.substr(at_, bytes);
        at_ += bytes;
    }

    // "]" may be a class's first character.
    void open_class() {
        in_class_ = true;
        copy(1);
        if (starts_with("^")) copy(1);
        if (starts_with("]")) out_ += "\\", copy(1);
    }

    void group() {
        for (const std::string_view known : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"})
            if (starts_with(known)) return copy(known.size());
        refuse(std::string("the group '") + std::string(pattern_.substr(at_, 4)) + "'");
    }

    // {1,3}+ is greedy here and possessive there.
    void interval_end() {
        copy(1);
        if (starts_with("+")) refuse("'}+'");
    }

    void escape() {
        const char c = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
        if (c == 's') {
            out_ += in_class_ ? std::string(kSpaces) : "[" + std::string(kSpaces) + "]";
            at_ += 2;
        } else if (c == 'S' && !in_class_) {
            out_ += "[^" + std::string(kSpaces) + "]";
            at_ += 2;
        } else if (c == 'v') {
            out_ += "\\x{b}";
            at_ += 2;
        } else if (c == 'u') {
            code_point();
        } else if (c == '\0') {
            refuse("'\\' at the end");
        } else if (std::isalnum(static_cast<unsigned char>(c)) &&
                   std::string_view("dDpPrntfaexzZA").find(c) == std::string_view::npos) {
            refuse(std::string("'\\") + c + "'");
        } else if (c == 'p' || c == 'P' || c == 'x') {
            braces();
        } else {
            copy(2);
        }
    }

    // \p{Lu}, \x{1F600}
    void braces() {
        copy(2);
        if (starts_with("{"))
            copy(std::min(pattern_.find('}', at_), pattern_.size() - 1) + 1 - at_);
    }

    // \uHHHH
    void code_point() {
        const std::string_view digits = pattern_.substr(at_ + 2, 4);
        if (digits.size() < 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos)
            refuse("'\\u' without four digits");
        out_ += "\\x{" + std::string(digits) + "}";
        at_ += 6;
    }

    std::string_view pattern_;
    const std::string& where_;
    size_t at_ = 0;
    bool in_class_ = false;
    std::string out_;
};

}  // namespace

std::string pcre_from_oniguruma(std::string_view pattern, const std::string& where) {
    return Translation(pattern, where).result();
}

}  // namespace hark
