#include "text/regex.h"

#include "core/error.h"
#include "text/pcre2_error.h"

namespace hark {
namespace {

std::string expand(std::string_view replacement, const Regex::Groups& groups) {
    std::string text;
    for (size_t i = 0; i < replacement.size(); ++i) {
        if (replacement[i] == '\\')
            text += groups.at(static_cast<size_t>(replacement[++i] - '0'));
        else
            text += replacement[i];
    }
    return text;
}

}  // namespace

Regex::Regex(const std::string& pattern) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                     PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
    require(code != nullptr, "the pattern ", pattern, " does not compile: ", pcre2_message(error));
    // Where PCRE2 has no compiler for this processor, it interprets the pattern.
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    code_ = std::shared_ptr<const void>(code, [code](const void*) { pcre2_code_free(code); });
    pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &groups_);
}

void Regex::for_each_match(std::string_view text,
                           const std::function<void(size_t begin, const Groups&)>& f) const {
    const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
        pcre2_match_data_create(groups_ + 1, nullptr), pcre2_match_data_free);
    require(match != nullptr, "out of memory while matching text");
    Groups groups(groups_ + 1);
    for (size_t at = 0; at < text.size();) {
        const int found = pcre2_match(static_cast<const pcre2_code*>(code_.get()),
                                      reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                      PCRE2_NO_UTF_CHECK, match.get(), nullptr);
        if (found == PCRE2_ERROR_NOMATCH) return;
        require(found > 0, "a pattern fails after byte ", at, ": ", pcre2_message(found));
        const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match.get());
        for (size_t i = 0; i < groups.size(); ++i)
            groups[i] = static_cast<int>(i) < found && ends[2 * i] != PCRE2_UNSET
                            ? text.substr(ends[2 * i], ends[2 * i + 1] - ends[2 * i])
                            : std::string_view();
        f(ends[0], groups);
        at = ends[1];
    }
}

std::string Regex::replace(std::string_view text, const Replace& replacement) const {
    std::string out;
    size_t done = 0;
    for_each_match(text, [&](size_t begin, const Groups& groups) {
        out += text.substr(done, begin - done);
        out += replacement(groups);
        done = begin + groups[0].size();
    });
    return out += text.substr(done);
}

std::string Regex::replace(std::string_view text, std::string_view replacement) const {
    return replace(text, [&](const Groups& groups) { return expand(replacement, groups); });
}

bool Regex::matches(std::string_view text) const {
    const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
        pcre2_match_data_create(groups_ + 1, nullptr), pcre2_match_data_free);
    require(match != nullptr, "out of memory while matching text");
    const int found =
        pcre2_match(static_cast<const pcre2_code*>(code_.get()),
                    reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                    PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED | PCRE2_ENDANCHORED, match.get(), nullptr);
    require(found > 0 || found == PCRE2_ERROR_NOMATCH, "a pattern fails: ", pcre2_message(found));
    return found > 0;
}

std::vector<std::string_view> Regex::split(std::string_view text) const {
    std::vector<std::string_view> parts;
    size_t done = 0;
    for_each_match(text, [&](size_t begin, const Groups& groups) {
        parts.push_back(text.substr(done, begin - done));
        done = begin + groups[0].size();
    });
    parts.push_back(text.substr(done));
    return parts;
}

}  // namespace hark
