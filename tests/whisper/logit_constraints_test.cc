// The decoding rules, search and window slicing on tables of token ids, with no weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "whisper/output/strings.h"
#include "whisper/transcribe/logit_constraints.h"
#include "whisper/transcribe/search.h"
#include "whisper/transcribe/token_sampler.h"
#include "whisper/transcribe/window_loop.h"

namespace hark::whisper {
namespace {

// A vocabulary of 10 words, eot 10, two specials, <|notimestamps|> 12, timestamps 13 to 22.
constexpr int32_t kEot = 10, kNoTimestamps = 12, kBegin = 13, kVocab = 23;

LogitConstraints small_rules() {
    LogitConstraints constraints;
    constraints.eot = kEot;
    constraints.no_timestamps = kNoTimestamps;
    constraints.timestamp_begin = kBegin;
    constraints.max_initial_timestamp = 4;
    constraints.blank = {2, kEot};
    constraints.suppressed = {3, 11};
    return constraints;
}

// What may follow `sampled` where all logits are equal but those of word 0 and eot, likelier than
// all timestamps together.
std::vector<int32_t> allowed(const LogitConstraints& constraints,
                             const std::vector<int32_t>& sampled) {
    std::vector<float> logits(kVocab, 0.0f);
    logits[0] = logits[kEot] = 5;
    apply_constraints(constraints, sampled, logits);
    std::vector<int32_t> ids;
    for (int32_t id = 0; id < kVocab; ++id)
        if (std::isfinite(logits[static_cast<size_t>(id)])) ids.push_back(id);
    return ids;
}

using Ids = std::vector<int32_t>;

TEST(LogitConstraints, TheFirstTokenIsAnEarlyTimestamp) {
    EXPECT_EQ(allowed(small_rules(), {}), (Ids{13, 14, 15, 16, 17}));
}

// A GPU makes the request of the next step from that of this one. All texts of up to five tokens.
TEST(LogitConstraints, TheNextRequestIsThatOfAllTokens) {
    for (const bool timestamps : {true, false}) {
        LogitConstraints constraints = small_rules();
        constraints.timestamps = timestamps;
        const SamplerConstraints of_gpu{nullptr, kVocab, kBegin, timestamps, kEot};
        const Ids tokens = {0, 5, kBegin, 17, kVocab - 1};
        std::vector<Ids> texts;
        for (const int32_t token : tokens) texts.push_back({token});
        for (size_t i = 0; i < texts.size(); ++i)
            for (const int32_t token : tokens) {
                const SampleRequest request = sample_request(constraints, texts[i], kVocab);
                Ids longer = texts[i];
                longer.push_back(token);
                EXPECT_EQ(next_request(of_gpu, request, texts[i].back(), token),
                          sample_request(constraints, longer, kVocab))
                    << testing::PrintToString(longer);
                if (longer.size() < 5) texts.push_back(longer);
            }
    }
}

TEST(LogitConstraints, NoLimitOnTheFirstTimestampWhereNoneIsSet) {
    LogitConstraints constraints = small_rules();
    constraints.max_initial_timestamp = -1;
    EXPECT_EQ(allowed(constraints, {}), (Ids{13, 14, 15, 16, 17, 18, 19, 20, 21, 22}));
}

TEST(LogitConstraints, TextFollowsTheFirstTimestamp) {
    EXPECT_EQ(allowed(small_rules(), {14}), (Ids{0, 1, 2, 4, 5, 6, 7, 8, 9, 10}));
}

TEST(LogitConstraints, TimestampsBehindTextMustExceedTheNewest) {
    EXPECT_EQ(allowed(small_rules(), {14, 5}),
              (Ids{0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 18, 19, 20, 21, 22}));
}

TEST(LogitConstraints, ASegmentsEndIsFollowedByItsTwinALaterOneOrTheEnd) {
    // Text is forbidden; the timestamp may repeat.
    EXPECT_EQ(allowed(small_rules(), {14, 5, 17}), (Ids{10, 17, 18, 19, 20, 21, 22}));
}

TEST(LogitConstraints, TextFollowsAPair) {
    EXPECT_EQ(allowed(small_rules(), {14, 5, 17, 17}), (Ids{0, 1, 2, 4, 5, 6, 7, 8, 9, 10}));
}

TEST(LogitConstraints, LikelyTimestampsTogetherForbidText) {
    std::vector<float> logits(kVocab, 0.0f);
    logits[0] = 1;  // likelier than any timestamp, less likely than the eight that are allowed
    apply_constraints(small_rules(), Ids{14, 5}, logits);
    EXPECT_FALSE(std::isfinite(logits[0]));
    EXPECT_FALSE(std::isfinite(logits[kEot]));
    EXPECT_TRUE(std::isfinite(logits[15]));
}

TEST(LogitConstraints, WithoutTimestampsOnlyBlankAndSuppressed) {
    LogitConstraints constraints = small_rules();
    constraints.timestamps = false;
    const Ids first = allowed(constraints, {});
    EXPECT_EQ(first.size(), kVocab - 4u);  // 2, 3, 10, 11
    EXPECT_EQ(allowed(constraints, {5}).size(), kVocab - 2u);
}

TEST(Search, GreedyTakesTheFirstOfEquals) {
    Random random(1);
    EXPECT_EQ(choose_token(std::vector<float>{0, 2, 1, 2}, 0, random), 1);
}

TEST(Search, SamplingFollowsTheDistributionAndNeverTakesTheForbidden) {
    constexpr float kMasked = -std::numeric_limits<float>::infinity();
    const std::vector<float> logits = {kMasked, std::log(1.0f), std::log(3.0f), kMasked};
    Random random(7);
    int count[4] = {};
    for (int i = 0; i < 20000; ++i) ++count[choose_token(logits, 1.0, random)];
    EXPECT_EQ(count[0] + count[3], 0);
    EXPECT_NEAR(count[2] / 20000.0, 0.75, 0.015);
}

TEST(Search, ARowEndsAtEotOrWhereTheContextIsFull) {
    const std::vector<float> logits(kVocab, 0.0f);
    Row row;
    append_token(row, logits, 5, kEot, 2);
    EXPECT_FALSE(row.finished);
    EXPECT_NEAR(row.sum_logprob, -std::log(23.0), 1e-6);
    Row ended = row;
    append_token(ended, logits, kEot, kEot, 2);
    EXPECT_TRUE(ended.finished);
    EXPECT_EQ(text_tokens(ended, kEot).size(), 1u);
    append_token(row, logits, 5, kEot, 2);
    append_token(row, logits, 5, kEot, 2);
    EXPECT_TRUE(row.finished);
}

TEST(Search, TheBestRowHasTheHighestMeanLogProbability) {
    Row rows[3];
    for (Row& row : rows) row.tokens[row.length++] = 5;
    rows[0].tokens[rows[0].length++] = 6;
    rows[0].sum_logprob = -3;  // two tokens: -1.5
    rows[1].sum_logprob = -1.2;
    rows[2].sum_logprob = -1.2;
    EXPECT_EQ(best_row(rows, kEot), 1u);
}

struct SliceCase {
    const char* name;
    Ids tokens;
    std::vector<std::vector<int64_t>> slices;  // begin, end, start step, end step
    int64_t advance;
};

TEST(Window, SlicesByTable) {
    const SliceCase cases[] = {
        {"no timestamps: one segment to the window's end", {1, 2}, {{0, 2, 0, -1}}, 3000},
        {"nothing", {}, {{0, 0, 0, -1}}, 3000},
        {"a start alone is ignored", {13, 1, 2}, {{0, 3, 0, -1}}, 3000},
        {"the last timestamp ends the segment", {13, 1, 17}, {{0, 3, 0, 4}}, 3000},
        {"one pair, unfinished tail decoded again", {13, 1, 17, 17, 2}, {{0, 3, 0, 4}}, 8},
        {"one pair, then an end alone: no speech follows",
         {13, 1, 17, 17, 2, 20},
         {{0, 3, 0, 4}, {3, 6, 4, 7}},
         3000},
        {"two pairs", {14, 1, 17, 18, 2, 20, 20}, {{0, 3, 1, 4}, {3, 6, 5, 7}}, 14},
    };
    for (const SliceCase& c : cases) {
        const WindowSlices cut = slice_window(c.tokens, kBegin, 3000);
        EXPECT_EQ(cut.advance, c.advance) << c.name;
        ASSERT_EQ(cut.slices.size(), c.slices.size()) << c.name;
        for (size_t i = 0; i < c.slices.size(); ++i) {
            const Slice& s = cut.slices[i];
            EXPECT_EQ((std::vector<int64_t>{static_cast<int64_t>(s.begin),
                                            static_cast<int64_t>(s.end), s.start_step, s.end_step}),
                      c.slices[i])
                << c.name;
        }
    }
}

TEST(Window, ThresholdsByTable) {
    struct Case {
        double compression, logprob, no_speech;
        Rejection rejection;
        bool silence;
    };
    const Case cases[] = {
        {1.5, -0.5, 0.1, Rejection::none, false},
        {2.5, -0.5, 0.1, Rejection::compression_ratio, false},
        {2.4, -1.0, 0.6, Rejection::none, false},  // the thresholds themselves pass
        {1.5, -1.1, 0.1, Rejection::logprob, false},
        {1.5, -1.1, 0.7, Rejection::none, true},  // silence excuses an unlikely text
        {2.5, -1.1, 0.7, Rejection::none, true},  // and a repetitive one
        {2.5, -0.5, 0.7, Rejection::compression_ratio, false},
        {1.5, -0.5, 0.9, Rejection::none, false},  // likely text is speech
    };
    for (const Case& c : cases) {
        DecodingResult result;
        result.compression_ratio = c.compression;
        result.avg_logprob = c.logprob;
        result.no_speech_prob = c.no_speech;
        EXPECT_EQ(rejection(result, {}), c.rejection) << c.compression << " " << c.logprob;
        EXPECT_EQ(is_silence(result, {}), c.silence) << c.compression << " " << c.logprob;
    }
}

TEST(Window, AThresholdOfNoneRefusesNothing) {
    DecodingResult result;
    result.compression_ratio = 9;
    result.avg_logprob = -0.5;
    EXPECT_EQ(rejection(result, {.compression_ratio = {}}), Rejection::none);
    result = {};
    result.avg_logprob = -9;
    EXPECT_EQ(rejection(result, {.logprob = {}}), Rejection::none);
    result.no_speech_prob = 0.9f;
    // Silence excuses nothing if one of its two thresholds is none.
    result.compression_ratio = 9;
    EXPECT_EQ(rejection(result, {}), Rejection::none);
    EXPECT_EQ(rejection(result, {.logprob = {}}), Rejection::compression_ratio);
    EXPECT_EQ(rejection(result, {.no_speech = {}}), Rejection::compression_ratio);
    EXPECT_FALSE(is_silence(result, {.no_speech = {}}));
    EXPECT_TRUE(is_silence(result, {}));
    // Without a threshold of its own a likely text is no speech either.
    result.avg_logprob = -0.1;
    EXPECT_FALSE(is_silence(result, {}));
    EXPECT_TRUE(is_silence(result, {.logprob = {}}));
}

TEST(Text, StripTakesUnicodeSpaces) {
    EXPECT_EQ(strip(" \t\u00a0a b\u3000\n"), "a b");
    EXPECT_EQ(strip(" \u2003"), "");
    EXPECT_EQ(strip(""), "");
}

TEST(Text, CompressionRatioIsZlibs) {
    EXPECT_EQ(compression_ratio(""), 0.0);
    // Python: len(s) / len(zlib.compress(s)) for s = b"ab" * 100
    EXPECT_NEAR(compression_ratio([] {
                    std::string s;
                    for (int i = 0; i < 100; ++i) s += "ab";
                    return s;
                }()),
                200.0 / 13.0, 1e-12);
}

}  // namespace
}  // namespace hark::whisper
