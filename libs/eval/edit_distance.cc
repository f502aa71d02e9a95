#include "eval/edit_distance.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <unordered_map>

#include "core/error.h"

namespace hark {
namespace {

using Symbols = std::span<const uint32_t>;

constexpr int64_t kBits = 64;
// Above this a table of all columns is not kept: the problem is halved first.
constexpr int64_t kTableBytes = int64_t{16} << 20;

// For each symbol its rows, 64 rows per word; words without a bit are left out.
class RowsOfSymbols {
  public:
    struct Block {
        int64_t index;
        uint64_t rows;
    };

    RowsOfSymbols(Symbols symbols, bool reversed) {
        const auto size = static_cast<int64_t>(symbols.size());
        for (int64_t i = 0; i < size; ++i) {
            auto& blocks = blocks_[symbols[static_cast<size_t>(reversed ? size - 1 - i : i)]];
            if (blocks.empty() || blocks.back().index != i / kBits)
                blocks.push_back({i / kBits, 0});
            blocks.back().rows |= uint64_t{1} << (i % kBits);
        }
    }
    std::span<const Block> of(uint32_t symbol) const {
        const auto found = blocks_.find(symbol);
        return found == blocks_.end() ? std::span<const Block>() : found->second;
    }

  private:
    std::unordered_map<uint32_t, std::vector<Block>> blocks_;
};

// The diagonals that an alignment of at most `errors` errors can reach: in addition to the
// difference of the lengths it pays for each diagonal twice, on the way there and on the way back.
struct Band {
    Band(Symbols from, Symbols to, int64_t errors) {
        const auto longer = static_cast<int64_t>(from.size()) - static_cast<int64_t>(to.size());
        below = (errors + longer) / 2;
        above = (errors - longer) / 2;
    }
    int64_t below, above;  // rows j - above <= i <= j + below
};

// A column of the table D(i, j), the distance of from[0, i) and to[0, j), as differences of
// neighbouring rows. Only a band of diagonals is kept; outside of it are upper bounds, so that
// distances on the way of an alignment that stays inside are exact (Ukkonen 1985).
class Column {
  public:
    Column(int64_t rows, Band band)
        : rows_(rows),
          band_(band),
          blocks_((rows + kBits - 1) / kBits),
          plus_(static_cast<size_t>(blocks_), ~uint64_t{0}),
          minus_(static_cast<size_t>(blocks_), 0) {
        end_ = block_behind(0);
    }

    // Moves to the next column, whose symbol is in these rows.
    void advance(std::span<const RowsOfSymbols::Block> rows);

    // D(i, j) of this column for every row i in the band; elsewhere a number over all of them.
    std::vector<int64_t> distances() const;
    int64_t last_distance() const { return distances().back(); }

    int64_t begin() const { return begin_; }  // the band's blocks [begin, end)
    int64_t end() const { return end_; }
    const std::vector<uint64_t>& plus() const { return plus_; }
    const std::vector<uint64_t>& minus() const { return minus_; }

  private:
    int64_t block_behind(int64_t column) const {
        return std::min(blocks_, (column + band_.below) / kBits + 1);
    }

    int64_t rows_;
    Band band_;
    int64_t blocks_;
    int64_t column_ = 0;
    int64_t begin_ = 0, end_ = 0;
    int64_t top_ = 0;                     // D in the row above the band's first
    std::vector<uint64_t> plus_, minus_;  // bit i: D(i + 1, j) - D(i, j) is 1, or -1
};

void Column::advance(std::span<const RowsOfSymbols::Block> rows) {
    ++column_;
    end_ = block_behind(column_);
    for (const int64_t begin =
             std::min((std::max<int64_t>(column_ - band_.above, 0)) / kBits, end_ - 1);
         begin_ < begin; ++begin_)
        top_ += std::popcount(plus_[static_cast<size_t>(begin_)]) -
                std::popcount(minus_[static_cast<size_t>(begin_)]);
    ++top_;
    auto next = std::lower_bound(
        rows.begin(), rows.end(), begin_,
        [](const RowsOfSymbols::Block& block, int64_t index) { return block.index < index; });
    // What comes in from above: the difference of the row's last two columns.
    uint64_t plus_in = 1, minus_in = 0;
    for (int64_t b = begin_; b < end_; ++b) {
        uint64_t equal = 0;
        if (next != rows.end() && next->index == b) equal = (next++)->rows;
        uint64_t& plus = plus_[static_cast<size_t>(b)];
        uint64_t& minus = minus_[static_cast<size_t>(b)];
        const uint64_t x = equal | minus_in;
        const uint64_t zero = (((x & plus) + plus) ^ plus) | x | minus;
        uint64_t across_plus = minus | ~(zero | plus);
        uint64_t across_minus = zero & plus;
        const uint64_t plus_out = across_plus >> (kBits - 1);
        const uint64_t minus_out = across_minus >> (kBits - 1);
        across_plus = across_plus << 1 | plus_in;
        across_minus = across_minus << 1 | minus_in;
        plus = across_minus | ~(zero | across_plus);
        minus = across_plus & zero;
        plus_in = plus_out;
        minus_in = minus_out;
    }
}

std::vector<int64_t> Column::distances() const {
    std::vector<int64_t> distances(static_cast<size_t>(rows_ + 1), rows_ + column_ + 1);
    int64_t distance = top_;
    for (int64_t i = begin_ * kBits;; ++i) {
        distances[static_cast<size_t>(i)] = distance;
        if (i == std::min(rows_, end_ * kBits)) return distances;
        const size_t block = static_cast<size_t>(i / kBits);
        distance += static_cast<int64_t>(plus_[block] >> (i % kBits) & 1);
        distance -= static_cast<int64_t>(minus_[block] >> (i % kBits) & 1);
    }
}

// The column after `to`, within the band.
Column last_column(Symbols from, Symbols to, Band band, bool reversed) {
    const RowsOfSymbols rows(from, reversed);
    Column column(static_cast<int64_t>(from.size()), band);
    for (size_t j = 0; j < to.size(); ++j)
        column.advance(rows.of(to[reversed ? to.size() - 1 - j : j]));
    return column;
}

// Takes from both what they have in common at their beginnings and ends.
struct Trimmed {
    Trimmed(Symbols a, Symbols b) : from(a), to(b) {
        const size_t shorter = std::min(a.size(), b.size());
        while (head < shorter && a[head] == b[head]) ++head;
        while (tail < shorter - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
        from = a.subspan(head, a.size() - head - tail);
        to = b.subspan(head, b.size() - head - tail);
    }
    Symbols from, to;
    size_t head = 0, tail = 0;
};

int64_t length_difference(Symbols from, Symbols to) {
    return std::abs(static_cast<int64_t>(from.size()) - static_cast<int64_t>(to.size()));
}

void append(std::vector<Edit>& edits, size_t times, Edit edit) {
    edits.insert(edits.end(), times, edit);
}

// The alignment by a table of all columns, read from its end. `distance` bounds the errors.
void align_by_table(Symbols from, Symbols to, int64_t distance, std::vector<Edit>& edits) {
    const RowsOfSymbols rows(from, false);
    Column column(static_cast<int64_t>(from.size()), {from, to, distance});
    struct Kept {
        int64_t begin;
        std::vector<uint64_t> plus, minus;
    };
    std::vector<Kept> table;
    const auto keep = [&] {
        const auto part = [&](const std::vector<uint64_t>& bits) {
            return std::vector<uint64_t>(bits.begin() + column.begin(),
                                         bits.begin() + column.end());
        };
        table.push_back({column.begin(), part(column.plus()), part(column.minus())});
    };
    keep();
    for (uint32_t symbol : to) {
        column.advance(rows.of(symbol));
        keep();
    }
    const auto bit = [](const Kept& kept, const std::vector<uint64_t>& bits, size_t row) {
        const int64_t block = static_cast<int64_t>(row) / kBits - kept.begin;
        return block >= 0 && block < static_cast<int64_t>(bits.size()) &&
               (bits[static_cast<size_t>(block)] >> (row % kBits) & 1);
    };
    size_t i = from.size(), j = to.size();
    const size_t first = edits.size();
    while (i > 0 && j > 0) {
        if (bit(table[j], table[j].plus, i - 1)) {
            edits.push_back(Edit::deletion);
            --i;
            continue;
        }
        --j;
        if (bit(table[j], table[j].minus, i - 1)) {
            edits.push_back(Edit::insertion);
        } else {
            --i;
            edits.push_back(from[i] == to[j] ? Edit::match : Edit::substitution);
        }
    }
    append(edits, i, Edit::deletion);
    append(edits, j, Edit::insertion);
    std::reverse(edits.begin() + static_cast<ptrdiff_t>(first), edits.end());
}

// `distance` is the number of errors.
void align_into(Symbols whole_from, Symbols whole_to, int64_t distance, std::vector<Edit>& edits) {
    const Trimmed trimmed(whole_from, whole_to);
    const Symbols from = trimmed.from, to = trimmed.to;
    append(edits, trimmed.head, Edit::match);
    const int64_t height = std::min<int64_t>(static_cast<int64_t>(from.size()), distance);
    if (from.empty() || to.empty()) {
        append(edits, from.size(), Edit::deletion);
        append(edits, to.size(), Edit::insertion);
    } else if ((height / kBits + 2) * 16 * static_cast<int64_t>(to.size()) <= kTableBytes ||
               to.size() == 1) {
        align_by_table(from, to, distance, edits);
    } else {
        // Hirschberg: where the best alignment crosses the middle column.
        const Band band(from, to, distance);  // of both halves: it is as wide from either end
        const size_t middle = to.size() / 2;
        const auto ahead = last_column(from, to.first(middle), band, false).distances();
        const auto after = last_column(from, to.subspan(middle), band, true).distances();
        size_t best = 0;
        for (size_t i = 0; i < ahead.size(); ++i)
            if (ahead[i] + after[from.size() - i] < ahead[best] + after[from.size() - best])
                best = i;
        align_into(from.first(best), to.first(middle), ahead[best], edits);
        align_into(from.subspan(best), to.subspan(middle), after[from.size() - best], edits);
    }
    append(edits, trimmed.tail, Edit::match);
}

}  // namespace

EditCounts& EditCounts::operator+=(const EditCounts& other) {
    matches += other.matches;
    substitutions += other.substitutions;
    deletions += other.deletions;
    insertions += other.insertions;
    return *this;
}

EditCounts count(std::span<const Edit> edits) {
    EditCounts counts;
    for (Edit edit : edits) {
        counts.matches += edit == Edit::match;
        counts.substitutions += edit == Edit::substitution;
        counts.deletions += edit == Edit::deletion;
        counts.insertions += edit == Edit::insertion;
    }
    return counts;
}

int64_t edit_distance(Symbols from, Symbols to) {
    const Trimmed trimmed(from, to);
    if (trimmed.from.empty() || trimmed.to.empty()) return length_difference(from, to);
    // The band is widened until it holds the answer.
    for (int64_t width = length_difference(from, to) + kBits;; width *= 2) {
        const int64_t distance =
            last_column(trimmed.from, trimmed.to, {trimmed.from, trimmed.to, width}, false)
                .last_distance();
        if (distance <= width) return distance;
    }
}

std::vector<Edit> align(Symbols from, Symbols to) {
    std::vector<Edit> edits;
    edits.reserve(std::max(from.size(), to.size()));
    align_into(from, to, edit_distance(from, to), edits);
    return edits;
}

}  // namespace hark
