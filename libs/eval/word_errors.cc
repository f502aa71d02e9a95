#include "eval/word_errors.h"

#include <unordered_map>

#include "text/unicode.h"
#include "text/utf8.h"

namespace hark {
namespace {

std::optional<double> rate(int64_t errors, int64_t of) {
    if (of == 0) return errors == 0 ? std::optional<double>(0) : std::nullopt;
    return static_cast<double>(errors) / static_cast<double>(of);
}

std::vector<std::string> copies(const std::vector<std::string_view>& words) {
    return {words.begin(), words.end()};
}

std::vector<uint32_t> characters_of(const std::vector<std::string>& words) {
    std::vector<uint32_t> characters;
    for (const std::string& word : words) {
        if (!characters.empty()) characters.push_back(U' ');
        for (size_t at = 0; at < word.size();) characters.push_back(next_code_point(word, at));
    }
    return characters;
}

}  // namespace

std::optional<double> ErrorCounts::word_rate() const {
    return rate(words.errors(), reference_words());
}

std::optional<double> ErrorCounts::character_rate() const {
    return rate(character_errors, characters);
}

ErrorCounts& ErrorCounts::operator+=(const ErrorCounts& other) {
    words += other.words;
    characters += other.characters;
    character_errors += other.character_errors;
    return *this;
}

Comparison compare_words(std::string_view reference, std::string_view hypothesis) {
    Comparison result{copies(words_of(reference)), copies(words_of(hypothesis)), {}, {}};
    std::unordered_map<std::string_view, uint32_t> numbers;
    const auto numbers_of = [&](const std::vector<std::string>& words) {
        std::vector<uint32_t> ids;
        for (const std::string& word : words)
            ids.push_back(
                numbers.try_emplace(word, static_cast<uint32_t>(numbers.size())).first->second);
        return ids;
    };
    const std::vector<uint32_t> from = numbers_of(result.reference);
    const std::vector<uint32_t> to = numbers_of(result.hypothesis);
    result.edits = align(from, to);
    result.counts.words = count(result.edits);
    const std::vector<uint32_t> characters = characters_of(result.reference);
    result.counts.characters = static_cast<int64_t>(characters.size());
    result.counts.character_errors = edit_distance(characters, characters_of(result.hypothesis));
    return result;
}

std::vector<AlignedWords> aligned_words(const Comparison& comparison) {
    std::vector<AlignedWords> places;
    auto reference = comparison.reference.begin();
    auto hypothesis = comparison.hypothesis.begin();
    for (Edit edit : comparison.edits) {
        AlignedWords place{edit};
        if (edit != Edit::insertion) place.reference = *reference++;
        if (edit != Edit::deletion) place.hypothesis = *hypothesis++;
        places.push_back(place);
    }
    return places;
}

}  // namespace hark
