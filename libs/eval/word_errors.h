// Word and character error rates of a transcript against its reference.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/edit_distance.h"

namespace hark {

// What rates are made of; of several recordings the sums.
struct ErrorCounts {
    EditCounts words;
    int64_t characters = 0;        // of the reference
    int64_t character_errors = 0;  // substitutions, deletions and insertions

    int64_t reference_words() const {
        return words.matches + words.substitutions + words.deletions;
    }
    // Errors / words, and errors / characters, which may be over 1; 0 where neither text says
    // anything, nullopt where only the hypothesis does.
    std::optional<double> word_rate() const;
    std::optional<double> character_rate() const;
    ErrorCounts& operator+=(const ErrorCounts& other);
};

// Two texts word by word.
struct Comparison {
    std::vector<std::string> reference, hypothesis;  // words
    std::vector<Edit> edits;                         // from reference to hypothesis
    ErrorCounts counts;
};

// Words are separated by white space; characters are code points of the words with single
// spaces between.
Comparison compare_words(std::string_view reference, std::string_view hypothesis);

// One place of an alignment.
struct AlignedWords {
    Edit edit = Edit::match;
    std::string_view reference, hypothesis;  // empty where the edit takes none
};

// The alignment's places in order; views into the comparison's words.
std::vector<AlignedWords> aligned_words(const Comparison& comparison);

}  // namespace hark
