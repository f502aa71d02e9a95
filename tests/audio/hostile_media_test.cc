// Files that were made to harm who decodes them.
#include <gtest/gtest.h>

#include "audio/audio_chunks.h"
#include "support/audio.h"
#include "support/expect.h"
#include "support/process.h"

namespace hark {
namespace {

using test::expect_contains;

// Writes the file and decodes it.
test::Whole decode_made(const std::string& name, const std::string& bytes,
                        const ReadOptions& options = {}) {
    const test::TemporaryDirectory directory;
    test::write_text(directory.path() / name, bytes);
    AudioChunks chunks(directory.path() / name, "1", options, 30 * kSampleRate);
    std::vector<Chunk> all;
    while (std::optional<Chunk> chunk = chunks.next()) all.push_back(std::move(*chunk));
    return test::join(all).begin()->second;
}

std::string big(uint64_t value, size_t bytes) {
    const std::string little = test::little_endian(value, bytes);
    return {little.rbegin(), little.rend()};
}

// 16-bit PCM in AU.
std::string au_file(uint64_t rate, uint64_t channels) {
    return ".snd" + big(24, 4) + big(8000, 4) + big(3, 4) + big(rate, 4) + big(channels, 4) +
           std::string(8000, '\0');
}

TEST(HostileMedia, APlaylistOpensNoFile) {
    const std::string other = (test::samples_dir() / "hat.wav").string();
    const std::string lists[] = {
        "ffconcat version 1.0\nfile '" + other + "'\n",
        "ffconcat version 1.0\nfile 'file:" + other + "'\n",
        "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n" + other +
            "\n#EXT-X-ENDLIST\n",
        "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 9 RTP/AVP 0\n",
        "<?xml version=\"1.0\"?>\n<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" "
        "profiles=\"urn:mpeg:dash:profile:isoff-main:2011\"></MPD>\n"};
    for (const std::string& list : lists)
        for (const char* name : {"a.mp3", "a.m3u8"}) {
            const test::Whole got = decode_made(name, list);
            EXPECT_TRUE(got.values.empty()) << list;
            expect_contains(got.error, std::string(name) + ": ");
        }
    expect_contains(decode_made("a.mp3", lists[0]).error,
                    "is not among the formats that are read; if you trust the file, convert it");
    expect_contains(decode_made("a", lists[2]).error,
                    "Apple HTTP Live Streaming is not among the formats that are read");
}

TEST(HostileMedia, RareFormatsAndCodecsAreRefused) {
    const std::string amiga = "FORM" + big(4 + 28 + 8 + 400, 4) + "8SVXVHDR" + big(20, 4) +
                              big(400, 4) + big(0, 8) + big(8000, 2) + big(256, 2) + big(65536, 4) +
                              "BODY" + big(400, 4) + std::string(400, '\1');
    expect_contains(decode_made("a.8svx", amiga).error,
                    "is not among the formats that are read; if you trust the file, convert it");
    // Creative's ADPCM, which libav and libsndfile both have a tag for.
    const test::Whole creative =
        decode_made("a.wav", test::wav_file(0x200, 1, 8000, 1, std::string(8000, '\x12')));
    EXPECT_TRUE(creative.values.empty());
    expect_contains(creative.error, "the codec adpcm_ct is not among those that are decoded");
}

TEST(HostileMedia, StatedRatesAndChannelsHaveBounds) {
    EXPECT_EQ(decode_made("a.au", au_file(8000, 1)).error, "");
    for (const uint64_t rate : {0ull, 1ull, 0x7fffffffull, 0xfffffff0ull})
        EXPECT_NE(decode_made("a.au", au_file(rate, 1)).error, "") << rate;
    for (const uint64_t channels : {0ull, 65ull, 0xffffull, 0x7fffffffull})
        EXPECT_NE(decode_made("a.au", au_file(8000, channels)).error, "") << channels;
    const std::string silence(8000, '\0');
    for (const int rate : {0, 0x7fffffff})
        EXPECT_NE(decode_made("a.wav", test::wav_file(1, 2, rate, 1, silence)).error, "") << rate;
}

TEST(HostileMedia, ARecordingHasAMostLength) {
    ReadOptions options;
    options.max_hours = 0.5 / 3600;
    const std::string second = test::noise_wav(1, kSampleRate);
    const test::Whole cut = decode_made("a.wav", second, options);
    expect_contains(cut.error,
                    "a.wav: longer than 0.000138889 h; if that is no mistake, use "
                    "--max-hours");
    EXPECT_GE(cut.values.size(), 8000u);
    options.max_hours = 1.0 / 3600;
    EXPECT_EQ(decode_made("a.wav", second, options).error, "");
    options.max_hours.reset();
    EXPECT_EQ(decode_made("a.wav", second, options).error, "");
}

// The most memory that this process has had mapped, in MB.
int64_t peak_megabytes() {
    const std::string status = test::read_text("/proc/self/status");
    return std::stoll(status.substr(status.find("VmPeak:") + 7)) / 1000;
}

// An index of 80 million packets would take 1,920 MB; the file has 15 KB.
TEST(HostileMedia, AnIndexThatClaimsMillionsOfPacketsTakesNoMemory) {
    std::string file = test::read_text(test::samples_dir() / "room.m4a");
    const size_t sizes = file.find("stsz");
    ASSERT_NE(sizes, std::string::npos);
    file.replace(sizes + 8, 8, big(1, 4) + big(80'000'000, 4));
    const int64_t before = peak_megabytes();
    EXPECT_NE(decode_made("a.m4a", file).error, "");
    EXPECT_LT(peak_megabytes() - before, 1000);
}

}  // namespace
}  // namespace hark
