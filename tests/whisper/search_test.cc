// Beams as pure functions over rows: tables worked out by hand from openai/whisper decoding.py,
// BeamSearchDecoder, and what a window's text may not repeat.
#include "whisper/transcribe/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "whisper/transcribe/logit_constraints.h"
#include "whisper/transcribe/window_loop.h"

namespace hark::whisper {
namespace {

constexpr int32_t kSearchEot = 9;
constexpr float kNever = -std::numeric_limits<float>::infinity();

Row row_of(std::vector<int32_t> tokens, double sum) {
    Row row;
    for (int32_t token : tokens) row.tokens[row.length++] = token;
    row.sum_logprob = sum;
    return row;
}

std::vector<int32_t> tokens_of(const Row& row) {
    return {row.tokens.begin(), row.tokens.begin() + row.length};
}

TEST(BestCandidates, AreInOrderWithLogProbabilities) {
    const std::vector<float> logits = {0, std::log(4.0f), kNever, std::log(2.0f), 0};
    const auto best = best_candidates(logits, 3);
    ASSERT_EQ(best.size(), 3u);
    EXPECT_EQ(best[0].token, 1);
    EXPECT_EQ(best[1].token, 3);
    EXPECT_EQ(best[2].token, 0);  // the lowest id of equal ones
    EXPECT_NEAR(best[0].logprob, std::log(4.0 / 8), 1e-6);
    EXPECT_NEAR(best[2].logprob, std::log(1.0 / 8), 1e-6);
    EXPECT_EQ(best_candidates(logits, 9).size(), 4u);  // what is ruled out is none
}

TEST(Beams, TheFirstStepSpreadsOneRow) {
    std::vector<Row> rows = {row_of({1}, 0)}, finished;
    const std::vector<std::vector<Candidate>> candidates = {{{4, -1}, {5, -2}, {6, -3}}};
    EXPECT_FALSE(advance_beams(rows, candidates, finished, {2, 2, kSearchEot}));
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(tokens_of(rows[0]), (std::vector<int32_t>{1, 4}));
    EXPECT_EQ(tokens_of(rows[1]), (std::vector<int32_t>{1, 5}));
    EXPECT_EQ(rows[1].sum_logprob, -2);
    EXPECT_EQ(rows[1].parent, 0);
    EXPECT_TRUE(finished.empty());
}

TEST(Beams, TheBestContinuationsOfAllRowsAreKept) {
    std::vector<Row> rows = {row_of({1, 4}, -1), row_of({1, 5}, -1.5)}, finished;
    const std::vector<std::vector<Candidate>> candidates = {{{6, -2}, {7, -3}, {8, -4}},
                                                            {{6, -0.5f}, {7, -1}, {8, -9}}};
    EXPECT_FALSE(advance_beams(rows, candidates, finished, {2, 2, kSearchEot}));
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(tokens_of(rows[0]), (std::vector<int32_t>{1, 5, 6}));
    EXPECT_EQ(tokens_of(rows[1]), (std::vector<int32_t>{1, 5, 7}));
    EXPECT_EQ(rows[0].parent, 1);
    EXPECT_EQ(rows[1].parent, 1);
}

TEST(Beams, AnEndThatRanksBehindTheRowsKeptDoesNotCount) {
    std::vector<Row> rows = {row_of({1}, 0)}, finished;
    const std::vector<std::vector<Candidate>> candidates = {{{4, -1}, {5, -2}, {kSearchEot, -3}}};
    EXPECT_FALSE(advance_beams(rows, candidates, finished, {2, 1, kSearchEot}));
    EXPECT_TRUE(finished.empty());
}

TEST(Beams, EnoughEndsEndTheSearch) {
    std::vector<Row> rows = {row_of({1, 4}, -1), row_of({1, 5}, -2)}, finished;
    const std::vector<std::vector<Candidate>> candidates = {
        {{kSearchEot, -0.5f}, {6, -2}, {7, -4}}, {{kSearchEot, -0.5f}, {6, -3}, {7, -4}}};
    const BeamOptions patient = {2, 3, kSearchEot};
    EXPECT_FALSE(advance_beams(rows, candidates, finished, patient));
    ASSERT_EQ(finished.size(), 2u);
    EXPECT_EQ(finished[0].sum_logprob, -1.5);
    EXPECT_EQ(tokens_of(finished[1]), (std::vector<int32_t>{1, 5, kSearchEot}));
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].sum_logprob, -3);
    EXPECT_TRUE(advance_beams(rows, candidates, finished, patient));
    EXPECT_EQ(finished.size(), 3u);  // no more than asked for
}

TEST(Beams, RowsThatCannotGoOnEndTheSearch) {
    std::vector<Row> rows = {row_of({1}, 0)}, finished;
    const std::vector<std::vector<Candidate>> candidates = {{{kSearchEot, 0}}};
    EXPECT_TRUE(advance_beams(rows, candidates, finished, {2, 4, kSearchEot}));
    EXPECT_TRUE(rows.empty());
    EXPECT_EQ(finished.size(), 1u);
}

TEST(Beams, TheBestUnfinishedOnesFillUpTheResults) {
    const std::vector<Row> rows = {row_of({1, 4}, -3), row_of({1, 5}, -2)};
    const std::vector<Row> finished = {row_of({1, kSearchEot}, -5)};
    const auto results = beam_results(rows, finished, {2, 2, kSearchEot});
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(results[0].sum_logprob, -5);
    EXPECT_EQ(results[1].sum_logprob, -2);
    EXPECT_EQ(beam_results(rows, std::vector<Row>(3), {2, 3, kSearchEot}).size(), 3u);
}

TEST(BestRow, ALengthPenaltyFavoursLongTexts) {
    std::vector<Row> rows = {row_of({4}, -1), row_of({4, 5, 6, 7}, -2.2)};
    EXPECT_EQ(best_row(rows, kSearchEot), 1u);  // -1 and -0.55 a token
    EXPECT_EQ(best_row(rows, kSearchEot, 0.0), 0u);
    EXPECT_EQ(best_row(rows, kSearchEot, 1.0), 0u);  // -1 and -2.2 / 1.5
    rows[1].sum_logprob = -1.4;
    EXPECT_EQ(best_row(rows, kSearchEot, 1.0), 1u);
}

TEST(SliceWindow, TextBeforeAnUnaskedPairBeginsAtTheWindowsStart) {
    const auto cut = slice_window(std::vector<int32_t>{3, 60, 60, 4}, 10, 3000);
    ASSERT_EQ(cut.slices.size(), 1u);
    EXPECT_EQ(cut.slices[0].start_step, 0);
    EXPECT_EQ(cut.slices[0].end_step, 50);
}

TEST(RepeatingTokens, EndAnNGramThatIsThere) {
    const std::vector<int32_t> text = {1, 2, 3, 1, 2, 4, 1, 2};
    EXPECT_EQ(repeating_tokens(text, 3), (std::vector<int32_t>{3, 4}));
    EXPECT_EQ(repeating_tokens(text, 2), (std::vector<int32_t>{3, 4}));
    EXPECT_EQ(repeating_tokens(text, 1).size(), text.size());
    EXPECT_TRUE(repeating_tokens(text, 9).empty());
    EXPECT_TRUE(repeating_tokens(text, 0).empty());
}

TEST(LogitConstraints, RepetitionsArePenalisedAndNGramsForbiddenInTextAlone) {
    LogitConstraints constraints;
    constraints.eot = 6;
    constraints.timestamp_begin = 8;
    constraints.timestamps = false;
    constraints.repetition_penalty = 2;
    constraints.no_repeat_ngram = 2;
    std::vector<float> logits = {1, 2, 4, -4, 1, 1, 1, 1, 3, 3};
    apply_constraints(constraints, std::vector<int32_t>{8, 2, 3, 9, 2}, logits);
    EXPECT_EQ(logits, (std::vector<float>{1, 2, 2, kNever, 1, 1, 1, 1, 3, 3}));
}

}  // namespace
}  // namespace hark::whisper
