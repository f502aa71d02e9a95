#include "operations/redact/word_list.h"

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "core/files/files.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark::redact {
namespace {

struct ListedWord {
    size_t begin, end;
    std::string lower;  // in the composed form, as whoever wrote the list may not have typed it
};

std::vector<ListedWord> words_of_letters(std::string_view text) {
    std::vector<ListedWord> words;
    size_t begin = 0;
    const auto add = [&](size_t end) {
        if (end > begin)
            words.push_back({begin, end, nfc(lower_case(text.substr(begin, end - begin)))});
    };
    for (size_t at = 0; at < text.size();) {
        const size_t before = at;
        const char kind = category_class(next_code_point(text, at));
        if (kind == 'L' || kind == 'N' || kind == 'M') continue;
        add(before);
        begin = at;
    }
    add(text.size());
    return words;
}

}  // namespace

void WordList::add(std::string_view phrase) {
    std::vector<std::string> words;
    for (ListedWord& word : words_of_letters(phrase)) words.push_back(std::move(word.lower));
    if (words.empty()) return;
    std::vector<std::vector<std::string>>& same = phrases_[words[0]];
    same.push_back(std::move(words));
    std::sort(same.begin(), same.end(),
              [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

void WordList::add_file(const std::string& file) {
    const std::string text = read_file_or_pipe(file);
    require(is_valid_utf8(text), file, ": not UTF-8; convert it with iconv");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (!line.starts_with('#')) add(line);
    require(!empty(), file, ": expected a word or a phrase on each line, found none");
}

std::vector<Finding> WordList::find(std::string_view text) const {
    std::vector<Finding> findings;
    if (phrases_.empty()) return findings;
    const std::vector<ListedWord> words = words_of_letters(text);
    for (size_t at = 0; at < words.size(); ++at) {
        const auto same = phrases_.find(words[at].lower);
        if (same == phrases_.end()) continue;
        for (const std::vector<std::string>& phrase : same->second) {
            const bool matches =
                at + phrase.size() <= words.size() &&
                std::equal(phrase.begin(), phrase.end(), words.begin() + static_cast<ptrdiff_t>(at),
                           [](const std::string& a, const ListedWord& b) { return a == b.lower; });
            if (!matches) continue;
            const size_t last = at + phrase.size() - 1;
            findings.push_back({words[at].begin, words[last].end, Kind::listed});
            at = last;
            break;
        }
    }
    return findings;
}

}  // namespace hark::redact
