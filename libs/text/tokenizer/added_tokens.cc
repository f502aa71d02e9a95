#include "text/tokenizer/added_tokens.h"

#include <algorithm>

#include "text/split.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark {
namespace {

// The last code point of text that is not empty, and where it begins.
std::pair<char32_t, size_t> last_of(std::string_view text) {
    size_t begin = text.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    size_t at = begin;
    return {next_code_point(text, at), begin};
}

bool is_word_character(char32_t c) {
    return c == '_' || class_of(c) == CharClass::letter || category_class(c) == 'M' ||
           digit_value(c) >= 0 || c == 0x200C || c == 0x200D;
}

bool is_single_word(std::string_view text, size_t begin, size_t end) {
    if (begin > 0 && is_word_character(last_of(text.substr(0, begin)).first)) return false;
    return end == text.size() || !is_word_character(next_code_point(text, end));
}

size_t spaces_before(std::string_view text, size_t begin) {
    while (begin > 0) {
        const auto [code_point, at] = last_of(text.substr(0, begin));
        if (class_of(code_point) != CharClass::space) break;
        begin = at;
    }
    return begin;
}

size_t spaces_after(std::string_view text, size_t end) {
    while (end < text.size()) {
        size_t next = end;
        if (class_of(next_code_point(text, next)) != CharClass::space) break;
        end = next;
    }
    return end;
}

}  // namespace

bool TrustedRanges::cover(size_t begin, size_t end) const {
    auto range = std::upper_bound(ranges.begin(), ranges.end(), begin,
                                  [](size_t at, const auto& r) { return at < r.first; });
    return range != ranges.begin() && end <= (--range)->second;
}

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
    std::vector<std::pair<std::string, int32_t>> contents;
    for (size_t i = 0; i < tokens_.size(); ++i)
        contents.push_back({tokens_[i].content, static_cast<int32_t>(i)});
    // The library keeps the first of equal contents, which normalising may make.
    std::stable_sort(contents.begin(), contents.end());
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    contents.erase(std::unique(contents.begin(), contents.end(), same), contents.end());
    std::erase_if(contents, [](const auto& entry) { return entry.first.empty(); });
    index_ = PrefixIndex(std::move(contents));
}

void AddedTokenFinder::split(std::string_view text, const TrustedRanges& trusted,
                             const Part& part) const {
    const bool mixed = !trusted.none() && !trusted.everything();
    size_t done = 0;
    for (size_t at = 0; !index_.empty() && at < text.size();) {
        const auto [length, found] = index_.longest_at(text, at);
        if (length == 0) {
            ++at;
            continue;
        }
        const AddedToken& token = tokens_[static_cast<size_t>(found)];
        size_t begin = at, end = at + length;
        // What is no token here may hide one that begins in a trusted part.
        if (token.special && !trusted.cover(begin, end)) {
            at = mixed ? at + 1 : end;
            continue;
        }
        at = end;
        if (token.single_word && !is_single_word(text, begin, end)) continue;
        if (token.left_strip) begin = std::max(spaces_before(text, begin), done);
        if (token.right_strip) end = spaces_after(text, end);
        if (done < begin) part(done, begin, nullptr);
        part(begin, end, &token);
        done = end;
    }
    if (done < text.size()) part(done, text.size(), nullptr);
}

}  // namespace hark
