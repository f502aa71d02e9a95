// Rules of jinja2 3.1.6, lexer.py, for ImmutableSandboxedEnvironment(trim_blocks, lstrip_blocks).
#include "text/jinja/lexer.h"

#include <algorithm>

#include "core/error.h"
#include "text/jinja/lexer_scan.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark::jinja {
namespace {

// Lines end in \n, and the last one has no end.
std::string normalized(std::string_view source) {
    std::string text;
    text.reserve(source.size());
    for (size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r') {
            text += source[i];
            continue;
        }
        text += '\n';
        if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
    if (text.ends_with('\n')) text.pop_back();
    return text;
}

class Lexer {
  public:
    explicit Lexer(std::string source) : source_(std::move(source)) {}

    std::vector<Token> run() {
        while (at_ < source_.size()) {
            const size_t tag = find_tag(at_);
            if (tag == source_.npos) {
                emit(TokenKind::data, source_.substr(at_));
                at_ = source_.size();
                break;
            }
            if (source_[tag + 1] == '#')
                comment(tag);
            else if (source_[tag + 1] == '{')
                output(tag);
            else if (const size_t end = raw_begin_end(source_, tag); end != 0)
                raw(tag, end);
            else
                block(tag);
        }
        emit(TokenKind::end, "");
        return std::move(tokens_);
    }

  private:
    void emit(TokenKind kind, std::string text) {
        if (kind == TokenKind::data && text.empty()) return;
        tokens_.push_back({kind, line_, std::move(text)});
    }

    [[noreturn]] void fail_here(const std::string& what) const { fail("line ", line_, ": ", what); }

    size_t find_tag(size_t from) const {
        for (size_t at = source_.find('{', from); at != source_.npos;
             at = source_.find('{', at + 1))
            if (at + 1 < source_.size() &&
                (source_[at + 1] == '{' || source_[at + 1] == '%' || source_[at + 1] == '#'))
                return at;
        return source_.npos;
    }

    void move_to(size_t end) {
        line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(at_),
                                             source_.begin() + static_cast<ptrdiff_t>(end), '\n'));
        line_starts_ = end > 0 && end > at_ && source_[end - 1] == '\n';
        at_ = end;
    }

    // Emits the text before a tag, and moves past the tag's two characters and its sign.
    void text_before(size_t tag, bool is_output) {
        const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
        std::string text = source_.substr(at_, tag - at_);
        if (sign == '-') {
            text.resize(trimmed_end(text));
        } else if (sign != '+' && !is_output) {
            const size_t line_begin = text.rfind('\n') + 1;
            if ((line_begin > 0 || line_starts_) && trimmed_end(text) <= line_begin)
                text.resize(line_begin);
        }
        emit(TokenKind::data, std::move(text));
        move_to(tag + 2 + (sign == '-' || sign == '+'));
    }

    void comment(size_t tag) {
        text_before(tag, false);
        const size_t close = source_.find("#}", at_);
        if (close == source_.npos) fail_here("Missing end of comment tag");
        const char sign = close > at_ ? source_[close - 1] : ' ';
        move_to(end_of_tag(close + 2, sign));
    }

    // The end of what a closing tag takes with it; `end` is after its brace.
    size_t end_of_tag(size_t end, char sign) const {
        if (sign == '-') return skip_spaces(source_, end);
        if (sign != '+' && end < source_.size() && source_[end] == '\n') return end + 1;
        return end;
    }

    void raw(size_t tag, size_t end) {
        text_before(tag, false);
        move_to(end);
        const auto [close, close_end] = find_endraw(source_, at_);
        if (close == source_.npos) fail_here("Missing end of raw directive");
        text_before(close, false);
        move_to(end_of_tag(close_end, source_[close_end - 3]));
    }

    void output(size_t tag) {
        text_before(tag, true);
        emit(TokenKind::output_begin, "");
        expression("}}", TokenKind::output_end);
    }

    void block(size_t tag) {
        text_before(tag, false);
        emit(TokenKind::block_begin, "");
        expression("%}", TokenKind::block_end);
    }

    // Tokens up to the closing tag, which counts only outside brackets.
    void expression(std::string_view close, TokenKind end_kind) {
        std::string open;  // closing brackets that are due
        while (at_ < source_.size()) {
            const char sign = source_[at_];
            const bool is_block = end_kind == TokenKind::block_end;
            const bool is_signed = sign == '-' || (sign == '+' && is_block);
            if (open.empty() && source_.compare(at_ + is_signed, 2, close) == 0) {
                emit(end_kind, "");
                const size_t end = at_ + is_signed + 2;
                if (is_block)
                    move_to(end_of_tag(end, is_signed ? sign : ' '));
                else
                    move_to(is_signed ? skip_spaces(source_, end) : end);
                return;
            }
            next_token(open);
        }
        emit(TokenKind::end, "");
    }

    void next_token(std::string& open) {
        const size_t spaces = skip_spaces(source_, at_);
        if (spaces > at_) return move_to(spaces);
        Token token;
        token.line = line_;
        const size_t end = scan_token(source_, at_, token);
        if (end == at_) fail_here("unexpected char '" + one_code_point(at_) + "'");
        if (token.kind == TokenKind::symbol) balance(token.text, open);
        tokens_.push_back(std::move(token));
        move_to(end);
    }

    std::string one_code_point(size_t at) const {
        size_t end = at;
        next_code_point(source_, end);
        return source_.substr(at, end - at);
    }

    void balance(const std::string& symbol, std::string& open) const {
        if (symbol == "{") open += '}';
        if (symbol == "(") open += ')';
        if (symbol == "[") open += ']';
        if (symbol != "}" && symbol != ")" && symbol != "]") return;
        if (open.empty()) fail_here("unexpected '" + symbol + "'");
        if (open.back() != symbol[0])
            fail_here("unexpected '" + symbol + "', expected '" + open.back() + "'");
        open.pop_back();
    }

    std::string source_;
    size_t at_ = 0;
    int line_ = 1;
    bool line_starts_ = true;
    std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(normalized(source)).run(); }

}  // namespace hark::jinja
