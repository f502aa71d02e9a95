#include "text/split.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>

#include "core/error.h"

namespace hark {
namespace {

// White space is spelt out: it is Unicode's White_Space property, and PCRE2's own \s takes U+180E
// for one, which left that property in Unicode 6.3.
#define HARK_SPACES                                                                    \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}" \
    "\\x{202f}\\x{205f}\\x{3000}"

constexpr const char* kPattern = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" HARK_SPACES
                                 "\\p{L}\\p{N}]+"
                                 "|[" HARK_SPACES "]+(?![^" HARK_SPACES "])|[" HARK_SPACES "]+";

std::string message_of(int error) {
    char text[256] = {};
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(text), sizeof text);
    return text;
}

const pcre2_code* compiled_pattern() {
    static const std::shared_ptr<pcre2_code> pattern = [] {
        int error = 0;
        PCRE2_SIZE offset = 0;
        pcre2_code* code =
            pcre2_compile(reinterpret_cast<PCRE2_SPTR>(kPattern), PCRE2_ZERO_TERMINATED,
                          PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &offset, nullptr);
        require(code != nullptr, "the tokenizer's pattern does not compile: ", message_of(error));
        // Where PCRE2 has no compiler for this processor, it interprets the pattern.
        pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
        return std::shared_ptr<pcre2_code>(code, pcre2_code_free);
    }();
    return pattern.get();
}

}  // namespace

std::vector<std::string_view> split_words(std::string_view text) {
    const pcre2_code* pattern = compiled_pattern();
    const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
        pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
    require(match != nullptr, "out of memory while splitting text");
    std::vector<std::string_view> words;
    for (size_t at = 0; at < text.size();) {
        const int found = pcre2_match(pattern, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                      text.size(), at, PCRE2_NO_UTF_CHECK, match.get(), nullptr);
        require(found > 0, "the tokenizer's pattern fails at byte ", at, ": ", message_of(found));
        const size_t end = pcre2_get_ovector_pointer(match.get())[1];
        words.push_back(text.substr(at, end - at));
        at = end;
    }
    return words;
}

}  // namespace hark
