#include "audio/mel_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "support/audio.h"
#include "support/recordings.h"

namespace hark {
namespace {

std::vector<float> noise(uint64_t seed, size_t count) {
    test::SplitMix64 generator(seed);
    std::vector<float> samples;
    for (size_t i = 0; i < count; ++i)
        samples.push_back(static_cast<float>(generator.draw() >> 48) / 65536 - 0.5f);
    return samples;
}

// The part [from, to) of a recording as a chunk, the last where it reaches the end.
Chunk part_of(const std::string& recording, const std::vector<float>& samples, size_t from,
              size_t to, const Metadata& more = {}) {
    to = std::min(to, samples.size());
    const std::vector<float> part(samples.begin() + static_cast<ptrdiff_t>(from),
                                  samples.begin() + static_cast<ptrdiff_t>(to));
    Chunk chunk =
        test::read_chunks(test::audio_document(recording, 0, part, true, more), "audio")[0];
    chunk.start = static_cast<int64_t>(from);
    chunk.last = to == samples.size();
    return chunk;
}

// Pushes a recording in pieces of `step` samples.
void push_all(MelStream& stream, const std::string& recording, const std::vector<float>& samples,
              size_t step, std::vector<Chunk>& out) {
    for (size_t at = 0;; at += step) {
        const Chunk chunk = part_of(recording, samples, at, at + step);
        stream.push(chunk, [&](Chunk mel) { out.push_back(std::move(mel)); });
        if (chunk.last) return;
    }
}

MelOptions options_of(double seconds, bool normalize = false) {
    MelOptions options;
    options.chunk.seconds = seconds;
    options.normalize = normalize;
    return options;
}

TEST(MelStream, ChunksLaidEndToEndAreTheSingleDocument) {
    const std::vector<float> samples = noise(1, 100123);
    std::vector<Chunk> whole;
    MelStream single(options_of(0));
    push_all(single, "a", samples, samples.size(), whole);
    ASSERT_EQ(whole.size(), 1u);
    const auto expected = test::join(whole).at("a");
    EXPECT_EQ(expected.last.at("content_frames"), "625");
    EXPECT_EQ(static_cast<int64_t>(expected.values.size()), log_mel_frames(100123) * 80);
    for (double seconds : {0.01, 0.5, 2.0, 6.27, 6.28}) {
        for (size_t step : {1000, 16000, 100123}) {
            std::vector<Chunk> chunks;
            MelStream stream(options_of(seconds));
            push_all(stream, "a", samples, step, chunks);
            const auto got = test::join(chunks).at("a");
            EXPECT_EQ(got.values, expected.values) << seconds << " s, " << step << " samples";
            int64_t start = 0;
            for (const Chunk& chunk : chunks) {
                EXPECT_EQ(chunk.start, start);
                start += chunk.length();
                EXPECT_EQ(chunk.last, &chunk == &chunks.back());
                if (!chunk.last) {
                    EXPECT_EQ(chunk.length(), std::llround(seconds * 100));
                }
            }
            EXPECT_EQ(got.last.at("content_frames"), "625");
        }
    }
}

TEST(MelStream, KeepsInterleavedRecordingsApart) {
    const std::vector<float> a = noise(1, 40000), b = noise(2, 30000);
    const auto emit_to = [](std::vector<Chunk>& out) {
        return [&out](Chunk chunk) { out.push_back(std::move(chunk)); };
    };
    std::vector<Chunk> apart, mixed;
    MelStream one(options_of(1)), two(options_of(1));
    push_all(one, "a", a, 16000, apart);
    push_all(one, "b", b, 16000, apart);
    for (size_t at = 0; at < 40000; at += 10000) {
        for (const auto& [id, samples] : {std::pair{"a", a}, std::pair{"b", b}}) {
            if (at >= samples.size()) continue;
            two.push(part_of(id, samples, at, at + 10000), emit_to(mixed));
        }
    }
    EXPECT_EQ(test::join(mixed).at("a").values, test::join(apart).at("a").values);
    EXPECT_EQ(test::join(mixed).at("b").values, test::join(apart).at("b").values);
}

TEST(MelStream, PassesOnWhatItDoesNotKnow) {
    std::vector<Chunk> out;
    MelStream stream(options_of(1));
    const std::vector<float> samples = noise(1, 48000);
    for (size_t i = 0; i < 2; ++i) {
        Chunk chunk = part_of("a", samples, i * 24000, (i + 1) * 24000,
                              {{"language", "de"}, {"part", std::to_string(i)}});
        float note[2] = {1.0f + static_cast<float>(i), 7.0f};
        chunk.document.add("note", Tensor(note, Dtype::f32, {2}));
        stream.push(chunk, [&](Chunk mel) { out.push_back(std::move(mel)); });
    }
    ASSERT_EQ(out.size(), 4u);  // 1 s, 1 s, 1 s, and two frames past 3 s
    EXPECT_EQ(out[0].document.header.metadata.at("part"), "0");
    EXPECT_EQ(out[2].document.header.metadata.at("part"), "1");
    for (const Chunk& chunk : out) EXPECT_EQ(chunk.document.header.metadata.at("language"), "de");
    EXPECT_EQ(out[0].document.tensor("note").as<float>()[0], 1.0f);
    EXPECT_EQ(out[1].document.tensor("note").as<float>()[0], 2.0f);
    EXPECT_EQ(out[2].document.find("note"), nullptr);
    EXPECT_EQ(out[3].document.find("samples"), nullptr);
}

TEST(MelStream, NormalizesOverTheWholeRecording) {
    const std::vector<float> samples = noise(3, 50000);
    std::vector<Chunk> raw, normalized;
    MelStream plain(options_of(0)), whisper(options_of(1, true));
    push_all(plain, "a", samples, 16000, raw);
    push_all(whisper, "a", samples, 16000, normalized);
    ASSERT_EQ(normalized.size(), 1u);
    const auto got = test::join(normalized).at("a");
    EXPECT_EQ(got.last.at("normalized"), "true");
    std::vector<float> expected = test::join(raw).at("a").values;
    const float top = *std::max_element(expected.begin(), expected.end());
    for (float& x : expected) x = (std::max(x, top - 8) + 4) / 4;
    EXPECT_EQ(got.values, expected);
}

TEST(MelStream, EndsOpenRecordingsWithTheError) {
    std::vector<Chunk> out;
    MelStream stream(options_of(1));
    const MelStream::Emit emit = [&](Chunk mel) { out.push_back(std::move(mel)); };
    stream.push(part_of("a", noise(1, 30000), 0, 20000), emit);
    stream.abandon("broke", emit);
    ASSERT_EQ(out.size(), 2u);
    EXPECT_TRUE(out[1].last);
    EXPECT_EQ(out[1].error, "broke");
    EXPECT_EQ(out[1].document.header.metadata.at("content_frames"), "125");
    stream.abandon("again", emit);
    EXPECT_EQ(out.size(), 2u);
}

TEST(MelStream, ARecordingOfNoSamplesIsADocument) {
    std::vector<Chunk> out;
    MelStream stream(options_of(30));
    push_all(stream, "a", {}, 100, out);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].length(), 2);
    EXPECT_EQ(out[0].document.header.metadata.at("content_frames"), "0");
}

}  // namespace
}  // namespace hark
