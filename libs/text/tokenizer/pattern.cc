#include "text/tokenizer/pattern.h"

#include <algorithm>

#include "core/error.h"
#include "text/pcre2_error.h"
#include "text/split.h"
#include "text/utf8.h"

namespace hark {
namespace {

constexpr size_t kMaxPattern = size_t{1} << 16;  // bytes
constexpr size_t kJitStackBytes = size_t{8}
                                  << 20;  // of a match that does not fit PCRE2's own 32 KB

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

Pattern Pattern::literal(std::string text) {
    Pattern pattern;
    pattern.text_ = std::move(text);
    return pattern;
}

Pattern Pattern::gpt2() {
    Pattern pattern;
    pattern.kind_ = Kind::gpt2;
    return pattern;
}

Pattern Pattern::regex(const std::string& text, const std::string& where) {
    if (text == kGpt2Pattern) return gpt2();
    require(text.size() <= kMaxPattern, where, ": a pattern of ", text.size(),
            " bytes is too long (at most ", kMaxPattern, ")");
    const std::string translated = pcre_from_oniguruma(text, where);
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* code =
        pcre2_compile(units(translated), translated.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE,
                      &error, &offset, nullptr);
    require(code != nullptr, where, ": the pattern '", text,
            "' does not compile: ", pcre2_message(error));
    // Where PCRE2 has no compiler for this processor, it interprets the pattern.
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    Pattern pattern;
    pattern.kind_ = Kind::regex;
    pattern.text_ = text;
    pattern.code_ =
        std::shared_ptr<const void>(code, [code](const void*) { pcre2_code_free(code); });
    return pattern;
}

struct Pattern::Search::Memory {
    pcre2_match_data* match = nullptr;
    pcre2_match_context* context = nullptr;
    pcre2_jit_stack* stack = nullptr;

    explicit Memory(size_t text_bytes)
        : match(pcre2_match_data_create(1, nullptr)), context(pcre2_match_context_create(nullptr)) {
        require(match && context, "out of memory while matching text");
        // A pattern that needs more than this for one match takes the square of the text or worse.
        const size_t limit = (size_t{1} << 20) + 64 * text_bytes;
        pcre2_set_match_limit(context, static_cast<uint32_t>(std::min(limit, size_t{UINT32_MAX})));
    }
    ~Memory() {
        pcre2_match_data_free(match);
        pcre2_match_context_free(context);
        pcre2_jit_stack_free(stack);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    void enlarge_stack() {
        stack = pcre2_jit_stack_create(size_t{1} << 16, kJitStackBytes, nullptr);
        require(stack != nullptr, "out of memory while matching text");
        pcre2_jit_stack_assign(context, nullptr, stack);
    }
};

Pattern::Search::Search(const Pattern& pattern, std::string_view text)
    : pattern_(pattern), text_(text) {
    if (pattern.kind_ == Kind::regex) memory_ = std::make_unique<Memory>(text.size());
}

Pattern::Search::~Search() = default;

Pattern::Match Pattern::Search::next() {
    if (at_ >= text_.size()) return {};
    if (pattern_.kind_ == Kind::regex) return next_regex();
    const size_t begin = at_;
    if (pattern_.kind_ == Kind::gpt2) return {begin, at_ = word_end(text_, begin), true};
    const size_t found = pattern_.text_.empty() ? text_.npos : text_.find(pattern_.text_, begin);
    if (found == text_.npos) return {};
    return {found, at_ = found + pattern_.text_.size(), true};
}

// After an empty match the search continues one character further, unless something begins there.
Pattern::Match Pattern::Search::next_regex() {
    for (;;) {
        const uint32_t options =
            PCRE2_NO_UTF_CHECK | (last_was_empty_ ? PCRE2_NOTEMPTY_ATSTART : 0);
        const auto* code = static_cast<const pcre2_code*>(pattern_.code_.get());
        int found = pcre2_match(code, units(text_), text_.size(), at_, options, memory_->match,
                                memory_->context);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT && !memory_->stack) {
            memory_->enlarge_stack();
            continue;
        }
        if (found == PCRE2_ERROR_NOMATCH) return {};
        require(found >= 0, "the pattern '", pattern_.text_, "' fails after byte ", at_, ": ",
                pcre2_message(found));
        const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(memory_->match);
        const Match match{ends[0], ends[1], true};
        last_was_empty_ = match.begin == match.end;
        at_ = match.end;
        if (last_was_empty_ && match.end == text_.size()) at_ = text_.size();
        return match;
    }
}

}  // namespace hark
