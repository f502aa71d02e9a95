// Edit distances and alignments against jiwer (tests/golden/edit_distance.py), a plain table, and
// what they cost for long texts.
#include "eval/edit_distance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "core/json/json.h"
#include "core/random.h"
#include "eval/word_errors.h"
#include "support/process.h"

using namespace hark;
using nlohmann::json;

namespace {

using Symbols = std::vector<uint32_t>;

// The definition: Levenshtein's recurrence.
int64_t table_distance(const Symbols& from, const Symbols& to) {
    std::vector<int64_t> row(to.size() + 1);
    for (size_t j = 0; j <= to.size(); ++j) row[j] = static_cast<int64_t>(j);
    for (size_t i = 1; i <= from.size(); ++i) {
        int64_t diagonal = std::exchange(row[0], static_cast<int64_t>(i));
        for (size_t j = 1; j <= to.size(); ++j) {
            const int64_t here =
                std::min({diagonal + (from[i - 1] != to[j - 1]), row[j] + 1, row[j - 1] + 1});
            diagonal = std::exchange(row[j], here);
        }
    }
    return row.back();
}

Symbols random_symbols(Random& random, size_t size, int kinds) {
    Symbols symbols(size);
    for (uint32_t& symbol : symbols) symbol = static_cast<uint32_t>(random.uniform() * kinds);
    return symbols;
}

// `from` with errors at `rate`.
Symbols with_errors(Random& random, const Symbols& from, double rate, int kinds) {
    Symbols to;
    for (uint32_t symbol : from) {
        const double kind = random.uniform() / rate;
        const auto other = static_cast<uint32_t>(random.uniform() * kinds);
        if (kind >= 2.0 / 3) to.push_back(kind >= 1 ? symbol : other);
        if (kind < 1.0 / 3) to.insert(to.end(), {symbol, other});
    }
    return to;
}

// The alignment leads from one to the other; returns its errors.
int64_t check_alignment(const Symbols& from, const Symbols& to) {
    size_t i = 0, j = 0;
    const std::vector<Edit> edits = align(from, to);
    for (Edit edit : edits) {
        if (edit == Edit::match || edit == Edit::substitution) {
            if (i >= from.size() || j >= to.size()) return -1;
            EXPECT_EQ(from[i] == to[j], edit == Edit::match);
        }
        i += edit != Edit::insertion;
        j += edit != Edit::deletion;
    }
    EXPECT_EQ(i, from.size());
    EXPECT_EQ(j, to.size());
    return count(edits).errors();
}

}  // namespace

TEST(EditDistance, EqualsJiwer) {
    const json golden =
        json::parse(test::read_text(test::source_dir() / "tests/golden/edit_distance.json"));
    ASSERT_GE(golden["pairs"].size(), 300u);
    for (const json& pair : golden["pairs"]) {
        const Comparison found =
            compare_words(pair[0].get<std::string>(), pair[1].get<std::string>());
        const EditCounts& words = found.counts.words;
        const std::vector<int64_t> counts = {words.matches, words.substitutions, words.deletions,
                                             words.insertions};
        EXPECT_EQ(counts, pair[2].get<std::vector<int64_t>>()) << pair;
        EXPECT_EQ(found.counts.character_errors, pair[3].get<int64_t>()) << pair;
    }
}

TEST(EditDistance, EqualsTheTable) {
    Random random(3);
    for (int i = 0; i < 1500; ++i) {
        const int kinds = 1 + static_cast<int>(random.uniform() * 6);
        const auto size = static_cast<size_t>(random.uniform() * random.uniform() * 400);
        const Symbols from = random_symbols(random, size, kinds);
        const Symbols to =
            i % 3 == 0 ? random_symbols(random, static_cast<size_t>(random.uniform() * 300), kinds)
                       : with_errors(random, from, random.uniform() * 0.5, kinds);
        const int64_t wanted = table_distance(from, to);
        ASSERT_EQ(edit_distance(from, to), wanted);
        ASSERT_EQ(check_alignment(from, to), wanted);
    }
}

// Long enough that the problem is halved, several times over.
TEST(EditDistance, AlignsInHalvesWhatIsLong) {
    Random random(4);
    for (const auto& [size, rate] : {std::pair{9000, 0.9}, {20000, 0.3}, {60000, 0.02}}) {
        const Symbols from = random_symbols(random, static_cast<size_t>(size), 50);
        const Symbols to = with_errors(random, from, rate, 50);
        const int64_t distance = check_alignment(from, to);
        EXPECT_EQ(distance, edit_distance(from, to));
        if (size < 10000) {
            EXPECT_EQ(distance, table_distance(from, to));
        }
    }
}

TEST(EditDistance, OfNothing) {
    const Symbols none, some = {1, 2, 3};
    EXPECT_EQ(edit_distance(none, none), 0);
    EXPECT_EQ(edit_distance(none, some), 3);
    EXPECT_EQ(count(align(some, none)).deletions, 3);
    EXPECT_EQ(count(align(none, some)).insertions, 3);
    EXPECT_TRUE(align(none, none).empty());
}

TEST(EditDistance, AlignsAHundredThousandWords) {
    Random random(5);
    const Symbols from = random_symbols(random, 100000, 5000);
    const Symbols to = with_errors(random, from, 0.2, 5000);
    const auto begin = std::chrono::steady_clock::now();
    const int64_t errors = check_alignment(from, to);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_GT(errors, 15000);
    EXPECT_LT(errors, 21000);
    RecordProperty("seconds", std::to_string(took.count()));
    EXPECT_LT(took.count(), 60);
}

TEST(WordErrors, CountsAndRates) {
    const Comparison found =
        compare_words(" the old  captain walked home ", "the captain walks home now");
    EXPECT_EQ(found.counts.words.matches, 3);
    EXPECT_EQ(found.counts.words.deletions, 1);
    EXPECT_EQ(found.counts.words.substitutions, 1);
    EXPECT_EQ(found.counts.words.insertions, 1);
    EXPECT_EQ(found.counts.characters, 27);
    EXPECT_DOUBLE_EQ(*found.counts.word_rate(), 0.6);
    EXPECT_EQ(compare_words("", "").counts.word_rate(), 0.0);
    EXPECT_EQ(compare_words("", "x").counts.word_rate(), std::nullopt);
    EXPECT_EQ(compare_words("x", "").counts.word_rate(), 1.0);
}
