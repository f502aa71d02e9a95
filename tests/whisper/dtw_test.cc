// Dynamic time warping and the median filter: openai/whisper tests/test_timing.py (test_dtw,
// test_dtw_cuda_equivalence's shapes, test_median_filter), and small cases worked out by hand.
// Golden: tests/golden/whisper_words.py.
#include "whisper/transcribe/dtw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/json/json.h"
#include "core/random.h"
#include "support/golden.h"
#include "support/process.h"
#include "whisper/transcribe/alignment.h"

namespace hark::whisper {
namespace {

using nlohmann::json;
using Path = std::vector<std::pair<int32_t, int32_t>>;

class PlantedPath : public testing::TestWithParam<std::pair<int32_t, int32_t>> {};

// Random costs below 1, and 1 less on a random way, which is then the cheapest.
TEST_P(PlantedPath, IsFound) {
    const auto [rows, columns] = GetParam();
    for (uint64_t seed = 1; seed <= 5; ++seed) {
        Random random(seed);
        std::vector<float> cost(static_cast<size_t>(rows) * static_cast<size_t>(columns));
        for (float& x : cost) x = static_cast<float>(random.uniform());
        std::vector<bool> rightwards(static_cast<size_t>(rows + columns - 2), false);
        std::fill(rightwards.begin() + rows - 1, rightwards.end(), true);
        for (size_t i = rightwards.size(); i > 1; --i) {
            const size_t other = random.next() % i;
            const bool kept = rightwards[i - 1];
            rightwards[i - 1] = rightwards[other];
            rightwards[other] = kept;
        }
        // Two steps in different directions are one diagonal step.
        Path planted = {{0, 0}};
        for (size_t k = 0; k < rightwards.size(); ++k) {
            auto [i, j] = planted.back();
            if (k + 1 < rightwards.size() && rightwards[k] != rightwards[k + 1]) {
                planted.push_back({i + 1, j + 1});
                ++k;
            } else {
                planted.push_back(rightwards[k] ? std::pair{i, j + 1} : std::pair{i + 1, j});
            }
        }
        for (const auto& [i, j] : planted) cost[static_cast<size_t>(i * columns + j)] -= 1;
        EXPECT_EQ(dtw(cost, rows, columns), planted) << "seed " << seed;
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PlantedPath,
                         testing::Values(std::pair{10, 20}, std::pair{32, 16}, std::pair{123, 1500},
                                         std::pair{234, 189}),
                         [](const auto& info) {
                             return concat(info.param.first, "x", info.param.second);
                         });

TEST(Dtw, TiesGoRight) {
    // All ways cost the same a step: diagonal and down need to be strictly cheaper.
    EXPECT_EQ(dtw(std::vector<float>(6, 0), 2, 3), (Path{{0, 0}, {1, 0}, {1, 1}, {1, 2}}));
    EXPECT_EQ(dtw(std::vector<float>(6, 1), 2, 3), (Path{{0, 0}, {1, 1}, {1, 2}}));
}

TEST(Dtw, EdgesAndOneRow) {
    EXPECT_EQ(dtw(std::vector<float>{3, 1, 2}, 1, 3), (Path{{0, 0}, {0, 1}, {0, 2}}));
    EXPECT_EQ(dtw(std::vector<float>{3, 1, 2}, 3, 1), (Path{{0, 0}, {1, 0}, {2, 0}}));
    EXPECT_EQ(dtw({}, 0, 0), Path{});
    EXPECT_THROW(dtw(std::vector<float>(5), 2, 3), Error);
}

TEST(Dtw, FirstFramesAreWhereRowsBegin) {
    // Rows 0, 1, 2 fit the frames 0 to 1, 2, 3 to 4.
    std::vector<float> fit(15, -1);
    for (const auto& [row, frame] : Path{{0, 0}, {0, 1}, {1, 2}, {2, 3}, {2, 4}})
        fit[static_cast<size_t>(row * 5 + frame)] = 1;
    EXPECT_EQ(first_frames(fit, 3, 5), (std::vector<int32_t>{0, 2, 3}));
    EXPECT_EQ(first_frames({}, 3, 0), (std::vector<int32_t>{0, 0, 0}));
    EXPECT_EQ(first_frames(std::vector<float>(3, NAN), 3, 1), (std::vector<int32_t>{0, 0, 0}));
}

const json& dtw_all() {
    static const json kGolden = test::golden("whisper_words.json");
    return kGolden;
}

// Whole numbers below 2^24 divided by it.
std::vector<float> draws(size_t count) {
    Random random(1);
    std::vector<float> values(count);
    for (float& x : values) x = static_cast<float>(random.next() >> 40) * 0x1p-24f;
    return values;
}

TEST(MedianFilter, EqualsScipy) {
    for (const json& entry : dtw_all()["median_filter"]) {
        size_t count = 1;
        for (const json& size : entry[0]) count *= size.get<size_t>();
        const size_t columns = entry[0].back().get<size_t>();
        for (const json& golden : entry[1]) {
            std::vector<float> x = draws(count);
            for (size_t i = 0; i < count; i += columns)
                median_filter({x.data() + i, columns}, golden[0].get<int64_t>());
            uint64_t sum = 0;
            for (size_t i = 0; i < count; ++i)
                sum += (2 * i + 1) * static_cast<uint64_t>(x[i] * 0x1p24f);
            EXPECT_EQ(std::to_string(sum), golden[1].get<std::string>()) << entry[0] << golden[0];
        }
    }
}

TEST(MedianFilter, EqualsSorting) {
    for (const int64_t n : {2, 3, 4, 7, 8, 50})
        for (const int64_t width : {1, 3, 7}) {
            std::vector<float> x = draws(static_cast<size_t>(n));
            for (size_t i = 0; i + 1 < x.size(); i += 3) x[i] = x[i + 1];  // equal values too
            std::vector<float> expected = x;
            for (int64_t i = 0; i < n && n > width / 2; ++i) {
                std::vector<float> around;
                for (int64_t j = i - width / 2; j <= i + width / 2; ++j) {
                    const int64_t place = std::abs(j) < n ? std::abs(j) : 2 * (n - 1) - j;
                    around.push_back(x[static_cast<size_t>(place)]);
                }
                std::sort(around.begin(), around.end());
                expected[static_cast<size_t>(i)] = around[static_cast<size_t>(width / 2)];
            }
            median_filter(x, width);
            EXPECT_EQ(x, expected) << n << " values, width " << width;
        }
}

TEST(MedianFilter, ShortRowsStayAndEvenWidthsAreErrors) {
    std::vector<float> x = {3, 1, 2};
    median_filter(x, 7);
    EXPECT_EQ(x, (std::vector<float>{3, 1, 2}));
    EXPECT_THROW(median_filter(x, 4), Error);
    EXPECT_THROW(median_filter(x, 0), Error);
}

// One head, two rows, two frames: probabilities (1/2, 1/2) and (3/4, 1/4), each one deviation from
// its column's mean.
TEST(AttentionMap, IsNormalisedOverTheRows) {
    std::vector<float> scores = {0, 0, std::log(3.0f), 0};
    const std::vector<float> fit = attention_map(scores, 1, 2, 2, 1);
    const float expected[] = {-1, 1, 1, -1};
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(fit[i], expected[i], 1e-5) << i;
}

TEST(AttentionMap, IsTheMeanOfTheHeadsAndZeroWhereRowsAgree) {
    std::vector<float> scores = {0, 0, std::log(3.0f), 0, 5, 5, 5, 5};
    const std::vector<float> fit = attention_map(scores, 2, 2, 2, 2);
    const float expected[] = {-0.5f, 0.5f, 0.5f, -0.5f};
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(fit[i], expected[i], 1e-5) << i;
}

}  // namespace
}  // namespace hark::whisper
