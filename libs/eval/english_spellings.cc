#include "eval/english_spellings.h"

#include <algorithm>

#include "text/unicode.h"

namespace hark {
namespace {

struct Row {
    const char* british;
    const char* american;
    const char* words;  // BEGINNING~ENDING,ENDING,...
};

const Row kRows[] = {
#include "eval/english_spellings.inc"
};

using Spellings = std::unordered_map<std::string, std::string>;

Spellings make_spellings() {
    Spellings spellings;
    for (const Row& row : kRows) {
        for (std::string_view word : words_of(row.words)) {
            const size_t change = word.find('~');
            const std::string beginning(word.substr(0, change));
            for (size_t at = change + 1, end; at <= word.size(); at = end + 1) {
                end = std::min(word.find(',', at), word.size());
                const std::string ending(word.substr(at, end - at));
                spellings[beginning + row.british + ending] = beginning + row.american + ending;
            }
        }
    }
    return spellings;
}

}  // namespace

const Spellings& english_spellings() {
    static const Spellings kSpellings = make_spellings();
    return kSpellings;
}

std::string normalize_english_spellings(std::string_view text) {
    const Spellings& spellings = english_spellings();
    std::string out;
    for (std::string_view word : words_of(text)) {
        if (!out.empty()) out += ' ';
        const auto found = spellings.find(std::string(word));
        out += found == spellings.end() ? word : std::string_view(found->second);
    }
    return out;
}

}  // namespace hark
