// PCM that comes piece by piece gives the chunks that the same bytes give as a file.
#include "audio/pcm_mel.h"

#include <gtest/gtest.h>

#include "audio/raw.h"
#include "support/audio.h"
#include "support/process.h"

namespace hark::test {
namespace {

MelOptions second_chunks() {
    MelOptions options;
    options.chunk.seconds = 1;
    return options;
}

std::vector<Chunk> chunks_of_file(const std::string& bytes, int rate) {
    const TemporaryDirectory directory;
    write_text(directory.path() / "pcm", bytes);
    AudioChunks audio((directory.path() / "pcm").string(), "1", {}, 1600, [&](Input& input) {
        return std::make_unique<RawDecoder>(input, RawFormat{.rate = rate});
    });
    MelStream mel(second_chunks());
    std::vector<Chunk> chunks;
    while (const std::optional<Chunk> chunk = audio.next())
        mel.push(*chunk, [&](Chunk one) { chunks.push_back(std::move(one)); });
    return chunks;
}

std::vector<Chunk> chunks_of_pieces(const std::string& bytes, int rate, size_t piece) {
    PcmMel mel(rate, "stdin", second_chunks());
    std::vector<Chunk> chunks;
    const auto emit = [&](Chunk one) { chunks.push_back(std::move(one)); };
    for (size_t at = 0; at < bytes.size(); at += piece) mel.push(bytes.substr(at, piece), emit);
    mel.finish(emit);
    return chunks;
}

std::string noise(size_t bytes) {
    std::string sound = noise_wav(3, bytes);
    return sound.substr(sound.size() - bytes);
}

void expect_equal_chunks(const std::vector<Chunk>& chunks, const std::vector<Chunk>& expected) {
    ASSERT_EQ(chunks.size(), expected.size());
    for (size_t i = 0; i < chunks.size(); ++i) {
        EXPECT_EQ(chunks[i].start, expected[i].start);
        EXPECT_EQ(chunks[i].last, expected[i].last);
        EXPECT_EQ(chunks[i].document.header.metadata, expected[i].document.header.metadata);
        EXPECT_EQ(*chunks[i].document.data, *expected[i].document.data) << i;
    }
}

TEST(PcmMel, PiecesGiveTheChunksOfTheFile) {
    for (const int rate : {16000, 8000, 44100}) {
        const std::string bytes = noise(static_cast<size_t>(rate) * 2 * 7 / 2);
        const std::vector<Chunk> expected = chunks_of_file(bytes, rate);
        EXPECT_EQ(expected.size(), 4u);
        for (const size_t piece : {size_t{1001}, size_t{32000}, bytes.size()})
            expect_equal_chunks(chunks_of_pieces(bytes, rate, piece), expected);
    }
}

TEST(PcmMel, HalfASampleIsAnErrorOfTheLastChunk) {
    const std::string bytes = noise(66001);
    const std::vector<Chunk> expected = chunks_of_file(bytes, 11025),
                             chunks = chunks_of_pieces(bytes, 11025, 999);
    expect_equal_chunks(chunks, expected);
    EXPECT_TRUE(
        expected.back().error.ends_with(chunks.back().error.substr(std::string("stdin").size())));
    EXPECT_EQ(chunks.back().error, "stdin: ends inside a sample (got 1 of 2 bytes)");
}

TEST(PcmMel, NoSampleIsNoChunk) {
    EXPECT_TRUE(chunks_of_pieces("", 16000, 1).empty());
    EXPECT_TRUE(chunks_of_pieces("a", 16000, 1).empty());
}

}  // namespace
}  // namespace hark::test
