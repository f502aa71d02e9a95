// Regions against faster-whisper's function (tests/golden/speech_regions.py), and the time map's
// properties over random regions.
#include "speech/regions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/json/json.h"
#include "core/random.h"
#include "support/process.h"

namespace hark::test {
namespace {

std::vector<float> probabilities(Random& random, size_t count) {
    std::vector<float> values;
    while (values.size() < count) {
        const int length = 1 + static_cast<int>(40 * random.uniform());
        const double level = random.uniform();
        for (int i = 0; i < length; ++i)
            values.push_back(static_cast<float>(level + 0.3 * (random.uniform() - 0.5)));
    }
    values.resize(count);
    return values;
}

struct Case {
    RegionOptions options;
    int64_t samples;
    std::vector<float> given;
    std::vector<Region> regions;
};

std::vector<Case> cases() {
    const auto golden =
        nlohmann::json::parse(read_text(source_dir() / "tests/golden/speech_regions.json"));
    std::vector<Case> all;
    for (const auto& entry : golden["cases"]) {
        Case c;
        c.options.threshold = entry["threshold"];
        c.options.min_speech = entry["min_speech_duration_ms"].get<double>() / 1000;
        c.options.min_silence = entry["min_silence_duration_ms"].get<double>() / 1000;
        c.options.max_speech = entry["max_speech_duration_s"];
        c.options.pad = entry["speech_pad_ms"].get<double>() / 1000;
        c.samples = entry["samples"];
        for (const auto& region : entry["regions"]) c.regions.push_back({region[0], region[1]});
        Random random(entry["seed"].get<uint64_t>());
        random.uniform(), random.uniform();  // drew the length
        c.given = probabilities(random, static_cast<size_t>(c.samples / 512 + 1));
        all.push_back(std::move(c));
    }
    return all;
}

TEST(Regions, AreThoseOfFasterWhisper) {
    size_t regions = 0;
    for (const Case& c : cases()) {
        EXPECT_TRUE(find_regions(c.given, 512, c.samples, c.options) == c.regions) << c.samples;
        regions += c.regions.size();
    }
    EXPECT_GT(regions, 900u);
}

TEST(Regions, DoNotDependOnHowProbabilitiesCome) {
    Random random(7);
    for (const Case& c : cases()) {
        RegionFinder finder(c.options, 512);
        std::vector<Region> found;
        for (size_t at = 0; at < c.given.size();) {
            const size_t count = std::min(c.given.size() - at, size_t(40 * random.uniform()));
            std::vector<Region> fresh;
            finder.push(std::span(c.given).subspan(at, count), fresh);
            at += count;
            // What has been returned is before what is read: it cannot change.
            for (const Region& region : fresh) {
                EXPECT_LE(region.end, static_cast<int64_t>(at) * 512);
                found.push_back(region);
            }
        }
        finder.finish(c.samples, found);
        EXPECT_TRUE(found == c.regions);
    }
}

TEST(Regions, NothingHeardIsNoRegion) {
    EXPECT_TRUE(find_regions({}, 160, 0, {}).empty());
    EXPECT_TRUE(find_regions(std::vector<float>(100, 0.0f), 160, 16000, {}).empty());
    const std::vector<Region> all = {{0, 16000}};
    EXPECT_TRUE(find_regions(std::vector<float>(102, 1.0f), 160, 16000, {}) == all);
}

// Sorted disjoint regions, some touching, some within one frame, some past the end.
std::vector<Region> random_regions(Random& random, int64_t samples) {
    std::vector<Region> regions;
    int64_t at = static_cast<int64_t>(400 * random.uniform());
    while (at < samples) {
        const double reach = random.uniform() < 0.3 ? 50 : 3000;
        const Region region{at, at + 1 + static_cast<int64_t>(reach * random.uniform())};
        regions.push_back(region);
        at = region.end;
        if (random.uniform() < 0.8) at += static_cast<int64_t>(2000 * random.uniform());
    }
    return regions;
}

TEST(TimeMap, EverySampleMapsThereAndBack) {
    Random random(11);
    for (int round = 0; round < 60; ++round) {
        const int64_t frames = static_cast<int64_t>(250 * random.uniform());
        const std::vector<Region> regions = random_regions(random, frames * 160);
        const TimeMap map(regions, frames);
        int64_t kept = 0, before = -1;
        for (int64_t sample = 0; sample < frames * 160; ++sample) {
            // A sample is kept where a region touches its frame.
            const int64_t frame = sample / 160 * 160;
            const bool touched = std::any_of(regions.begin(), regions.end(), [&](const Region& r) {
                return r.begin < frame + 160 && r.end > frame;
            });
            ASSERT_EQ(map.keeps(sample), touched) << sample;
            const int64_t packed = map.in_packed(sample);
            ASSERT_GE(packed, before);
            ASSERT_LE(packed, map.length());
            before = packed;
            if (!touched) continue;
            ASSERT_EQ(packed, kept++);
            ASSERT_EQ(map.start_in_recording(packed), sample);
            ASSERT_EQ(map.end_in_recording(packed + 1), sample + 1);
            ASSERT_EQ(std::llround(map.start_in_recording_s(packed / 16000.0) * 16000), sample);
            ASSERT_EQ(std::llround(map.end_in_recording_s((packed + 1) / 16000.0) * 16000),
                      sample + 1);
        }
        EXPECT_EQ(map.length(), kept);
        EXPECT_EQ(map.length() % 160, 0);
    }
}

TEST(TimeMap, PiecesAreWholeFramesAndMonotonic) {
    Random random(12);
    for (int round = 0; round < 200; ++round) {
        const int64_t frames = static_cast<int64_t>(500 * random.uniform());
        const TimeMap map(random_regions(random, frames * 160 + 500), frames);
        int64_t recording = -1, packed = 0;
        for (const TimeMap::Piece& piece : map.pieces()) {
            EXPECT_EQ(piece.recording % 160, 0);
            EXPECT_EQ(piece.length % 160, 0);
            EXPECT_GT(piece.length, 0);
            EXPECT_GT(piece.recording, recording);
            EXPECT_EQ(piece.packed, packed);
            recording = piece.recording + piece.length;  // pieces that touch are one
            packed += piece.length;
        }
        EXPECT_LE(recording, frames * 160);
        EXPECT_EQ(packed, map.length());
        int64_t last_start = 0, last_end = 0;
        for (int64_t at = -500; at < packed + 500; at += 37) {
            EXPECT_GE(map.start_in_recording(at), last_start);
            EXPECT_GE(map.end_in_recording(at), last_end);
            last_start = map.start_in_recording(at);
            last_end = map.end_in_recording(at);
            EXPECT_LE(last_end, last_start);
            EXPECT_LE(last_start, frames * 160);
        }
    }
}

TEST(TimeMap, ABoundaryBelongsToTheSideThatAsks) {
    const std::vector<Region> regions = {{1600, 3200}, {16000, 17600}};
    const TimeMap map(regions, 200);
    EXPECT_EQ(map.length(), 3200);
    EXPECT_EQ(map.end_in_recording(1600), 3200);
    EXPECT_EQ(map.start_in_recording(1600), 16000);
    EXPECT_DOUBLE_EQ(map.end_in_recording_s(0.1), 0.2);
    EXPECT_DOUBLE_EQ(map.start_in_recording_s(0.1), 1.0);
    EXPECT_EQ(map.start_in_recording(0), 1600);
    EXPECT_EQ(map.end_in_recording(0), 1600);
    EXPECT_EQ(map.end_in_recording(99999), 17600);
    EXPECT_EQ(map.start_in_recording(99999), 17600);
    EXPECT_EQ(map.in_packed(0), 0);
    EXPECT_EQ(map.in_packed(8000), 1600);
    EXPECT_EQ(map.in_packed(99999), 3200);
    EXPECT_EQ(TimeMap({}, 100).length(), 0);
    EXPECT_EQ(TimeMap({}, 100).end_in_recording(5), 0);
}

TEST(Regions, ADocumentTellsThemOrIsRefused) {
    const std::vector<Region> regions = {{0, 5}, {5, 9}};
    Document document;
    EXPECT_FALSE(speech_of(document).has_value());
    document.add("note", Tensor(const_cast<char*>("abc"), Dtype::u8, {3}));  // what follows is odd
    add_speech(document, regions);
    EXPECT_TRUE(speech_of(document) == regions);
    Document none;
    add_speech(none, {});
    EXPECT_TRUE(speech_of(none)->empty());
    std::vector<int64_t> rows = {0, 5, 4, 9, 7, 7, -1, 3};
    for (int64_t row : {0, 2, 3}) {  // overlaps the next row; empty; negative
        Document bad;
        bad.add("speech", Tensor(rows.data() + 2 * row, Dtype::i64, {row == 0 ? 2 : 1, 2}));
        EXPECT_THROW(speech_of(bad), Error) << row;
    }
    Document wrong;
    wrong.add("speech", Tensor(rows.data(), Dtype::i64, {8}));
    EXPECT_THROW(speech_of(wrong), Error);
}

TEST(TimeMap, RefusesRegionsOutOfOrder) {
    EXPECT_THROW(TimeMap(std::vector<Region>{{10, 20}, {19, 30}}, 10), Error);
    EXPECT_THROW(TimeMap(std::vector<Region>{{20, 10}}, 10), Error);
    EXPECT_THROW(TimeMap(std::vector<Region>{{-1, 10}}, 10), Error);
}

}  // namespace
}  // namespace hark::test
