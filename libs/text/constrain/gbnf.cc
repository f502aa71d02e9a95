#include "text/constrain/gbnf.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/error.h"
#include "text/constrain/char_set.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark {
namespace {

constexpr int kDeepestGbnfGroups = 100;
constexpr int64_t kMostGbnfCount = 10'000;

bool is_name_char(char32_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

class GbnfParser {
  public:
    explicit GbnfParser(std::string_view text) : text_(to_code_points(text)) {}

    Grammar parse() {
        skip(true);
        while (at_ < text_.size()) rule();
        const auto root = rules_.find("root");
        if (root == rules_.end() || !root->second.defined) wrong("there is no rule root");
        for (const auto& [name, info] : rules_)
            if (!info.defined)
                fail("grammar: line ", info.line, ": the rule ", name, " has no definition");
        grammar_.set_root(root->second.rule);
        return std::move(grammar_);
    }

  private:
    struct Known {
        Grammar::Rule rule = 0;
        bool defined = false;
        size_t line = 0;  // that names it first
    };

    size_t line() const {
        const auto end = text_.begin() + static_cast<ptrdiff_t>(std::min(at_, text_.size()));
        return 1 + static_cast<size_t>(std::count(text_.begin(), end, U'\n'));
    }
    [[noreturn]] void wrong(const std::string& what) const {
        fail("grammar: line ", line(), ": ", what);
    }
    bool has(char32_t c) const { return at_ < text_.size() && text_[at_] == c; }
    bool take(char32_t c) { return has(c) && ++at_; }
    bool take(std::u32string_view s) {
        return std::u32string_view(text_).substr(at_).starts_with(s) && (at_ += s.size());
    }
    // Spaces and comments; line ends too if `lines`.
    void skip(bool lines) {
        while (at_ < text_.size()) {
            const char32_t c = text_[at_];
            if (c == '#')
                while (at_ < text_.size() && !has('\n') && !has('\r')) ++at_;
            else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))
                ++at_;
            else
                return;
        }
    }

    std::string name() {
        std::string name;
        while (at_ < text_.size() && is_name_char(text_[at_]))
            name += static_cast<char>(text_[at_++]);
        if (name.empty()) wrong("expected a rule's name");
        return name;
    }
    Known& named(const std::string& name) {
        const auto [place, is_new] = rules_.try_emplace(name);
        if (is_new)
            place->second = {grammar_.add_rule(name, Grammar::Calls::expanded), false, line()};
        return place->second;
    }

    void rule() {
        const std::string name = this->name();
        Known& known = named(name);
        if (known.defined) wrong(concat("the rule ", name, " is defined twice"));
        skip(false);
        if (!take(U"::=")) wrong(concat("expected ::= after ", name));
        known.defined = true;
        const Grammar::Rule rule = known.rule;
        skip(true);
        grammar_.define(rule, alternatives(0));
        if (at_ < text_.size() && !has('\n') && !has('\r'))
            wrong(concat("unexpected '", to_utf8({&text_[at_], 1}), "' in the rule ", name));
        skip(true);
    }

    // Inside a group line ends are spaces, and after |.
    Grammar::Expr alternatives(int depth) {
        if (depth > kDeepestGbnfGroups)
            wrong(concat("groups nested deeper than ", kDeepestGbnfGroups));
        std::vector<Grammar::Expr> choices = {sequence(depth)};
        while (take('|')) {
            skip(true);
            choices.push_back(sequence(depth));
        }
        return choices.size() == 1 ? choices[0] : grammar_.choice(std::move(choices));
    }

    Grammar::Expr sequence(int depth) {
        std::vector<Grammar::Expr> parts;
        while (at_ < text_.size()) {
            Grammar::Expr part = 0;
            if (take('"'))
                part = text();
            else if (take('['))
                part = utf8_char(grammar_, char_class());
            else if (take('.'))
                part = utf8_char(grammar_, CharSet::all());
            else if (take('('))
                part = group(depth);
            else if (is_name_char(text_[at_]))
                part = grammar_.call(named(name()).rule);
            else
                break;
            skip(depth > 0);
            while (has('*') || has('+') || has('?') || has('{')) {
                part = repeated(part);
                skip(depth > 0);
            }
            parts.push_back(part);
        }
        return parts.size() == 1 ? parts[0] : grammar_.sequence(std::move(parts));
    }

    Grammar::Expr group(int depth) {
        skip(true);
        const Grammar::Expr inside = alternatives(depth + 1);
        skip(true);
        if (!take(')')) wrong("'(' without ')'");
        return inside;
    }

    Grammar::Expr repeated(Grammar::Expr part) {
        if (take('*')) return grammar_.repeat(part, 0, kUnlimited);
        if (take('+')) return grammar_.repeat(part, 1, kUnlimited);
        if (take('?')) return grammar_.optional(part);
        ++at_;
        skip(true);
        const int64_t least = count();
        int64_t most = least;
        skip(true);
        if (take(',')) {
            skip(true);
            most = has('}') ? kUnlimited : count();
            skip(true);
        }
        if (!take('}')) wrong("expected {m}, {m,} or {m,n}");
        if (most != kUnlimited && most < least) wrong("a repetition's counts are out of order");
        return grammar_.repeat(part, least, most);
    }

    int64_t count() {
        int64_t value = -1;
        for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
            value = std::min<int64_t>(std::max<int64_t>(value, 0) * 10 + (text_[at_] - U'0'),
                                      kMostGbnfCount + 1);
        if (value < 0) wrong("expected {m}, {m,} or {m,n}");
        if (value > kMostGbnfCount) wrong(concat("a count above ", kMostGbnfCount));
        return value;
    }

    Grammar::Expr text() {
        std::string bytes;
        while (!take('"')) append_code_point(bytes, character("a text without its closing \""));
        return grammar_.text(bytes);
    }

    CharSet char_class() {
        const bool negates = take('^');
        std::vector<CharRange> ranges;
        while (!take(']')) {
            const char32_t first = character("'[' without ']'");
            char32_t last = first;
            if (has('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
                ++at_;
                last = character("'[' without ']'");
            }
            if (last < first) wrong("a range that is out of order");
            ranges.push_back({first, last});
        }
        const CharSet set(std::move(ranges));
        return negates ? ~set : set;
    }

    char32_t character(const char* end) {
        if (at_ >= text_.size()) wrong(end);
        const char32_t c = text_[at_++];
        if (c != '\\') return c;
        const char32_t escape = at_ < text_.size() ? text_[at_++] : U'\n';
        switch (escape) {
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'x':
                return hex(2);
            case 'u':
                return hex(4);
            case 'U':
                return hex(8);
            case '\\':
            case '"':
            case '[':
            case ']':
            case '-':
            case '^':
                return escape;
            default:
                wrong(concat("the escape \\", to_utf8({&escape, 1}), " is unknown"));
        }
    }

    char32_t hex(int places) {
        uint64_t value = 0;
        for (int i = 0; i < places; ++i) {
            const std::u32string_view kDigits = U"0123456789abcdefABCDEF";
            const size_t digit = at_ < text_.size() ? kDigits.find(text_[at_++]) : kDigits.npos;
            if (digit == kDigits.npos) wrong(concat("expected ", places, " hexadecimal digits"));
            value = value * 16 + (digit < 16 ? digit : digit - 6);
        }
        if (value > 0x10FFFF || CharSet::of(static_cast<char32_t>(value)).empty())
            wrong("expected the number of a code point");
        return static_cast<char32_t>(value);
    }

    std::u32string text_;
    size_t at_ = 0;
    Grammar grammar_;
    std::map<std::string, Known> rules_;
};

}  // namespace

Grammar parse_gbnf(std::string_view text) { return GbnfParser(replace_invalid(text)).parse(); }

}  // namespace hark
