// The fewest substitutions, deletions and insertions that turn one sequence into another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hark {

enum class Edit : uint8_t { match, substitution, deletion, insertion };

struct EditCounts {
    int64_t matches = 0, substitutions = 0, deletions = 0, insertions = 0;

    int64_t errors() const { return substitutions + deletions + insertions; }
    EditCounts& operator+=(const EditCounts& other);
};

EditCounts count(std::span<const Edit> edits);

// An alignment with the fewest errors, in order: match and substitution take a symbol of both, a
// deletion one of `from`, an insertion one of `to`. Where several alignments are as short, the
// choice is the one that, read from the end, prefers a deletion, then an insertion; deterministic.
// Time about (longer length) x (errors + 64) / 64, memory linear in the lengths.
// Source: Hyyro 2003, "A bit-vector algorithm for computing Levenshtein and Damerau edit
// distances"; Ukkonen 1985 (the band); Hirschberg 1975 (halves, in linear memory).
std::vector<Edit> align(std::span<const uint32_t> from, std::span<const uint32_t> to);

// The number of errors of align(), without the alignment; the same bounds.
int64_t edit_distance(std::span<const uint32_t> from, std::span<const uint32_t> to);

}  // namespace hark
