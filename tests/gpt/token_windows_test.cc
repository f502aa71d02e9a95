#include "gpt/train/token_windows.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/random.h"
#include "gpt/train/trainer.h"
#include "support/process.h"

using namespace hark;
using namespace hark::gpt;

namespace {

// A token file of `count` ids from `first` on.
std::string counting_file(const std::filesystem::path& path, int32_t first, int32_t count) {
    std::vector<int32_t> ids(static_cast<size_t>(count));
    std::iota(ids.begin(), ids.end(), first);
    const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    TokenWriter writer(fd, path.string(), 2);
    writer.write(ids);
    writer.finish();
    ::close(fd);
    return path.string();
}

std::vector<int32_t> window_of(const TokenWindows& windows, uint64_t i, double shift) {
    std::vector<int32_t> ids(static_cast<size_t>(windows.length() + 1));
    windows.copy(i, shift, ids);
    return ids;
}

TEST(Shuffle, IsOneToOne) {
    for (const uint64_t n : {1u, 2u, 3u, 16u, 17u, 1000u, 4097u}) {
        for (const uint64_t seed : {1u, 2u}) {
            const Shuffle shuffle(n, seed);
            std::set<uint64_t> seen;
            for (uint64_t i = 0; i < n; ++i) {
                ASSERT_LT(shuffle[i], n);
                seen.insert(shuffle[i]);
            }
            EXPECT_EQ(seen.size(), n);
        }
    }
}

// Neighbours end up as far from one another as random ones: a third of the range on average.
TEST(Shuffle, LooksRandom) {
    constexpr uint64_t kCount = 10000;
    const Shuffle shuffle(kCount, 3), other(kCount, 4);
    double distance = 0, fixed = 0;
    for (uint64_t i = 0; i + 1 < kCount; ++i) {
        const auto a = static_cast<double>(shuffle[i]), b = static_cast<double>(shuffle[i + 1]);
        distance += std::abs(a - b) / kCount;
        fixed += shuffle[i] == other[i];
    }
    EXPECT_NEAR(distance / kCount, 1.0 / 3, 0.01);
    EXPECT_LT(fixed, 10);
}

TEST(TokenWindows, AreLaidEndToEndInEachFile) {
    const test::TemporaryDirectory folder;
    const std::vector<std::string> files = {counting_file(folder.path() / "a", 0, 27),
                                            counting_file(folder.path() / "short", 500, 8),
                                            counting_file(folder.path() / "b", 100, 17)};
    const TokenWindows windows(files, 8, 600);
    ASSERT_EQ(windows.size(), 3u + 0 + 2);
    EXPECT_EQ(windows.tokens(), 27u + 8 + 17);
    EXPECT_EQ(windows.description(), "a:27 short:8 b:17");
    EXPECT_EQ(window_of(windows, 0, 0), (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(window_of(windows, 2, 0).front(), 16);
    EXPECT_EQ(window_of(windows, 3, 0).front(), 100);
    EXPECT_EQ(window_of(windows, 4, 0).back(), 116);
    EXPECT_EQ(window_of(windows, 2, 0.999).back(), 26);  // the file's last token
    EXPECT_EQ(window_of(windows, 4, 0.999).back(), 116);
    EXPECT_THROW(TokenWindows(files, 27, 600), Error);
    EXPECT_THROW(TokenWindows(files, 8, 500), Error);
    EXPECT_THROW(TokenWindows({}, 8, 500), Error);
}

TEST(TrainingOrder, EveryWindowOnceAnEpochInAnOrderOfTheSeed) {
    const test::TemporaryDirectory folder;
    const TokenWindows windows({counting_file(folder.path() / "a", 0, 1000)}, 10, 1000);
    const TrainingOrder order(windows, 7), same(windows, 7), other(windows, 8);
    std::vector<int32_t> ids(11), again(11);
    std::vector<std::vector<int32_t>> epochs(3);
    size_t differing = 0;
    for (uint64_t i = 0; i < 3 * windows.size(); ++i) {
        order.copy(i, ids);
        same.copy(i, again);
        EXPECT_EQ(ids, again);
        other.copy(i, again);
        differing += ids != again;
        epochs[i / windows.size()].push_back(ids[0] / 10);
    }
    EXPECT_GT(differing, 200u);
    EXPECT_NE(epochs[0], epochs[1]);
    for (std::vector<int32_t>& epoch : epochs) {
        std::sort(epoch.begin(), epoch.end());
        for (int32_t i = 0; i < 99; ++i) ASSERT_EQ(epoch[static_cast<size_t>(i)], i);
    }
}

std::vector<int32_t> values(const Tensor& t) {
    return std::vector<int32_t>(t.as<int32_t>(), t.as<int32_t>() + t.size());
}

TEST(BatchRows, DocumentsAreSequencesOfTheirOwn) {
    BatchRows plain(-1), masked(9);
    const std::vector<int32_t> a = {1, 2, 9, 3, 4}, b = {9, 5, 9, 9, 6};
    for (BatchRows* rows : {&plain, &masked}) {
        rows->add(a);
        rows->add(b);
        EXPECT_EQ(values(rows->view().tokens), (std::vector<int32_t>{1, 2, 9, 3, 9, 5, 9, 9}));
        EXPECT_EQ(values(rows->view().targets), (std::vector<int32_t>{2, 9, 3, 4, 5, 9, 9, 6}));
    }
    EXPECT_EQ(values(plain.view().sequences.first), (std::vector<int32_t>{0, 0, 0, 0, 4, 4, 4, 4}));
    EXPECT_EQ(values(plain.view().sequences.end), (std::vector<int32_t>{4, 4, 4, 4, 8, 8, 8, 8}));
    EXPECT_EQ(values(plain.view().position), (std::vector<int32_t>{0, 1, 2, 3, 0, 1, 2, 3}));
    EXPECT_EQ(values(masked.view().sequences.first),
              (std::vector<int32_t>{0, 0, 2, 2, 4, 4, 6, 7}));
    EXPECT_EQ(values(masked.view().sequences.end), (std::vector<int32_t>{2, 2, 4, 4, 6, 6, 7, 8}));
    EXPECT_EQ(values(masked.view().position), (std::vector<int32_t>{0, 1, 0, 1, 0, 1, 0, 0}));
    masked.clear();
    masked.add(a);
    EXPECT_EQ(values(masked.view().sequences.first), (std::vector<int32_t>{0, 0, 2, 2}));
}

// llm.c's own test: uniform noise stays below 3 deviations, 10 is 5 and more.
TEST(OutlierWindow, TellsWhatStandsOut) {
    OutlierWindow window;
    Random random(1);
    for (size_t i = 0; i + 1 < OutlierWindow::kValues; ++i)
        EXPECT_EQ(window.add(2 * random.uniform() - 1), 0);
    for (int i = 0; i < 2000; ++i) EXPECT_LT(std::abs(window.add(2 * random.uniform() - 1)), 3);
    EXPECT_GE(window.add(10), 5);
    EXPECT_EQ(window.values().size(), OutlierWindow::kValues);
    OutlierWindow copy(window.values());
    EXPECT_EQ(copy.add(0.5), window.add(0.5));
    OutlierWindow same(std::vector<double>(OutlierWindow::kValues, 2.0));
    EXPECT_EQ(same.add(2.0), 0);
}

TEST(LearningRate, FollowsItsSchedule) {
    OptimizerOptions o;
    o.learning_rate = 1;
    o.warmup = 10;
    o.final_fraction = 0.1;
    const auto expect = [&](const char* schedule,
                            std::initializer_list<std::pair<int64_t, double>> rates) {
        o.schedule = schedule;
        for (const auto& [step, rate] : rates)
            EXPECT_NEAR(o.rate_of(step, 110), rate, 1e-9) << schedule << " " << step;
    };
    expect("cosine", {{1, 0.1}, {10, 1}, {60, 0.55}, {110, 0.1}});
    expect("linear", {{5, 0.5}, {10, 1}, {35, 0.775}, {110, 0.1}});
    expect("constant", {{10, 1}, {11, 1}, {110, 1}});
    expect("wsd", {{88, 1}, {99, 0.1 + 0.9 * (1 - std::sqrt(0.5))}, {110, 0.1}});
    o.warmup = 0;
    expect("cosine", {{1, 0.1 + 0.45 * (1 + std::cos(M_PI / 110))}});
}

}  // namespace
