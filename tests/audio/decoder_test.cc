#include "audio/audio_chunks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "audio/sndfile.h"
#include "core/error.h"
#include "support/audio.h"
#include "support/process.h"

namespace hark {
namespace {

test::Whole read_whole(const std::string& path, ReadOptions options = {}) {
    AudioChunks chunks(path, "1", options, 30 * kSampleRate);
    std::vector<Chunk> all;
    while (std::optional<Chunk> chunk = chunks.next()) all.push_back(std::move(*chunk));
    return test::join(all).begin()->second;
}

std::string sample(const char* name) { return test::samples_dir() / name; }

TEST(Decoder, ReadsEveryContainerOfTheSamples) {
    int containers = 0;
    for (const char* ending : {".wav", ".mp3", ".flac", ".ogg", ".mp4", ".mkv", ".m4a", ".webm"}) {
        bool found = false;
        for (const auto& entry : std::filesystem::directory_iterator(test::samples_dir())) {
            if (entry.path().extension() != ending) continue;
            const test::Whole got = read_whole(entry.path());
            EXPECT_EQ(got.error, "") << entry.path();
            EXPECT_GT(got.values.size(), 16000u) << entry.path();
            EXPECT_LT(got.values.size(), 60 * 16000u) << entry.path();
            found = true;
        }
        containers += found;
    }
    EXPECT_EQ(containers, 8);
}

TEST(Decoder, ReadsOtherCodecsInsideWavByLibav) {
    const test::TemporaryDirectory directory;
    std::string law;  // mu-law: 0xff is silence
    law.assign(16000, '\xff');
    const std::string path = directory.path() / "law.wav";
    test::write_text(path, test::wav_file(7, 1, 8000, 1, law));
    const test::Whole got = read_whole(path);
    EXPECT_EQ(got.error, "");
    EXPECT_EQ(got.values, std::vector<float>(32000, 0.0f));
}

// libsndfile is C: what the input throws inside its callbacks is thrown again after the call,
// unchanged.
TEST(Decoder, LibsndfilePassesOnWhatBrokeItsInput) {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "a.wav";
    test::write_text(path, test::noise_wav(3, 60 * kSampleRate));
    const int fd = ::open(path.c_str(), O_RDONLY), unreadable = ::open("/dev/null", O_WRONLY);
    ASSERT_GE(std::min(fd, unreadable), 0);
    Input input(fd, "a recording");
    const std::unique_ptr<Decoder> decoder = open_sndfile(input);
    ASSERT_NE(decoder, nullptr);
    AudioBlock block;
    ASSERT_TRUE(decoder->next(block));
    ::dup2(unreadable, fd);
    try {
        while (decoder->next(block)) continue;
        ADD_FAILURE() << "the recording ended as if it were whole";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("a recording: cannot read"), std::string::npos)
            << error.what();
    }
    Input broken(fd, "another");
    EXPECT_THROW(open_sndfile(broken), Error);
    ::close(fd);
    ::close(unreadable);
}

// MATLAB 4's file of a matrix: libav does not know it.
TEST(Decoder, FallsBackToLibsndfile) {
    // HTK's waveforms: samples, 100 ns per sample, bytes per sample and a kind, big-endian.
    std::string file = std::string("\0\0\x0f\xa0\0\0\x02\x71\0\x02\0\0", 12);
    for (int i = 0; i < 4000; ++i) {
        const int sample = static_cast<int>(std::sin(i * 0.1) * 16384);
        file += {static_cast<char>(sample >> 8), static_cast<char>(sample)};
    }
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "a.htk";
    test::write_text(path, file);
    const test::Whole got = read_whole(path);
    EXPECT_EQ(got.error, "");
    ASSERT_EQ(got.values.size(), 4000u);
    EXPECT_NEAR(got.values[10], std::sin(1.0) / 2, 1e-4);
    // The same through a pipe, which must be kept in a file first.
    const test::ProcessResult piped = test::run_shell("cat '" + path + "' | audio-decode -");
    EXPECT_EQ(piped.exit_code, 0) << piped.err;
    EXPECT_EQ(test::join(test::read_chunks(piped.out, "audio"))["1"].values, got.values);
}

TEST(Decoder, SaysWhatIsNotAudio) {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "file.mp3";
    std::string bytes;
    test::write_text(path, "");
    EXPECT_NE(read_whole(path).error.find(path + ": the file is empty (expected audio)"),
              std::string::npos);
    for (int i = 0; i < 5000; ++i) bytes += "some words of a text\n";
    test::write_text(path, bytes);
    EXPECT_NE(read_whole(path).error.find(path + ": this is no audio"), std::string::npos);
    bytes.clear();
    for (uint64_t i = 0; i < 20000; ++i) bytes += test::little_endian((i * i) ^ (i << 7), 5);
    test::write_text(path, bytes);
    EXPECT_NE(read_whole(path).error.find(path + ": this is no audio"), std::string::npos);
    EXPECT_NE(read_whole(directory.path() / "none.wav").error.find("No such file"),
              std::string::npos);
    EXPECT_NE(read_whole(directory.path()).error.find("directory"), std::string::npos);
    // A playlist cannot open what it names.
    test::write_text(path, "#EXTM3U\n#EXTINF:10,\n" + sample("story.mp3") + "\n");
    EXPECT_NE(read_whole(path).error.find(path + ": this is no audio"), std::string::npos);
    const std::string picture = directory.path() / "silent.y4m";
    test::write_text(picture, "YUV4MPEG2 W2 H2 F1:1 C420jpeg\nFRAME\nabcdef");
    EXPECT_NE(read_whole(picture).error.find("YUV4MPEG pipe is not among the formats"),
              std::string::npos)
        << read_whole(picture).error;
}

// Cut in the middle, every format that tells its length is named broken, and what was there stays.
TEST(Decoder, NamesFilesThatWereCut) {
    const test::TemporaryDirectory directory;
    for (const char* name : {"harbour.wav", "family.flac", "rain.mkv", "ship.webm"}) {
        const std::string bytes = test::read_text(sample(name));
        const std::string path = directory.path() / name;
        test::write_text(path, bytes.substr(0, bytes.size() / 2));
        const test::Whole cut = read_whole(path), whole = read_whole(sample(name));
        EXPECT_NE(cut.error.find(path), std::string::npos) << name << ": " << cut.error;
        EXPECT_GT(cut.values.size(), whole.values.size() / 4) << name;
        EXPECT_LT(cut.values.size(), whole.values.size() * 3 / 4) << name;
    }
    for (const char* name : {"room.m4a", "news.mp4"}) {  // without the index nothing can be read
        const std::string bytes = test::read_text(sample(name));
        const std::string path = directory.path() / name;
        test::write_text(path, bytes.substr(0, bytes.size() / 2));
        EXPECT_NE(read_whole(path).error.find(path), std::string::npos) << name;
    }
}

// The middle of a FLAC file zeroed: its frames have numbers, so the gap is seen.
TEST(Decoder, NamesAGapInside) {
    const test::TemporaryDirectory directory;
    std::string bytes = test::read_text(sample("family.flac"));
    for (size_t i = bytes.size() * 2 / 5; i < bytes.size() * 3 / 5; ++i) bytes[i] = 0;
    const std::string path = directory.path() / "zeroed.flac";
    test::write_text(path, bytes);
    const test::Whole got = read_whole(path), whole = read_whole(sample("family.flac"));
    EXPECT_NE(got.error.find(" s are missing at "), std::string::npos) << got.error;
    EXPECT_LT(got.values.size(), whole.values.size() - 8000);
    EXPECT_GT(got.values.size(), whole.values.size() / 4);
}

// Only what was asked for can be missing.
TEST(Decoder, ChecksThePartThatIsRead) {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "half.mp3";
    test::write_text(path, test::read_text(sample("story.mp3")).substr(0, 80270));
    ReadOptions options;
    options.duration = 10;
    EXPECT_EQ(read_whole(path, options).error, "");
    options.start = 5;
    EXPECT_EQ(read_whole(path, options).error, path + ": ends at 13.3 of 26.7 s");
    options.start = 20;
    EXPECT_EQ(read_whole(path, options).error, path + ": ends at 13.3 of 26.7 s");
}

TEST(Decoder, NamesAnMp4WithItsIndexInFrontThatWasCut) {
    if (test::run_shell("command -v ffmpeg").exit_code != 0) GTEST_SKIP() << "no ffmpeg here";
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "front.m4a";
    ASSERT_EQ(test::run_shell("ffmpeg -nostdin -v error -i '" + sample("story.mp3") +
                              "' -c:a aac -movflags +faststart '" + path + "'")
                  .exit_code,
              0);
    EXPECT_EQ(read_whole(path).error, "");
    const std::string bytes = test::read_text(path);
    test::write_text(path, bytes.substr(0, bytes.size() / 2));
    EXPECT_NE(read_whole(path).error.find(path), std::string::npos);
    EXPECT_GT(read_whole(path).values.size(), 5 * 16000u);
}

TEST(AudioChunks, StartAndDurationCutExactly) {
    for (const char* name : {"harbour.wav", "story.mp3", "two_speakers.flac"}) {
        const std::vector<float> whole = read_whole(sample(name)).values;
        ReadOptions options;
        options.start = 0.5;
        options.duration = 1.25;
        const std::vector<float> part = read_whole(sample(name), options).values;
        ASSERT_EQ(part.size(), 20000u) << name;
        EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 8000)) << name;
        options.duration.reset();
        EXPECT_EQ(read_whole(sample(name), options).values.size(), whole.size() - 8000) << name;
        options.duration = 0;
        EXPECT_EQ(read_whole(sample(name), options).values.size(), 0u) << name;
        options.start = 1000;
        EXPECT_NE(read_whole(sample(name), options)
                      .error.find("--start is after its end (got 1000 s, the recording has "),
                  std::string::npos);
    }
}

TEST(AudioChunks, TracksAreCountedFrom0) {
    ReadOptions options;
    options.track = 1;
    EXPECT_NE(read_whole(sample("news.mp4"), options).error.find("no audio track 1 (got 1 track"),
              std::string::npos);
    EXPECT_NE(read_whole(sample("hat.wav"), options).error.find("no audio track 1 (got 1 track"),
              std::string::npos);
}

TEST(AudioChunks, ALackOfMemoryIsNamed) {
    AudioChunks chunks(sample("hat.wav"), "1", {}, 10000,
                       [](Input&) -> std::unique_ptr<Decoder> { throw std::bad_alloc(); });
    EXPECT_EQ(chunks.next()->error, "out of memory");
}

TEST(AudioChunks, ChunksAreAsLongAsAsked) {
    AudioChunks chunks(sample("harbour.wav"), "7", {}, 10000);
    int64_t start = 0;
    bool ended = false;
    while (std::optional<Chunk> chunk = chunks.next()) {
        ASSERT_FALSE(ended);
        EXPECT_EQ(chunk->recording, "7");
        EXPECT_EQ(chunk->source, sample("harbour.wav"));
        EXPECT_EQ(chunk->start, start);
        start += chunk->length();
        ended = chunk->last;
        if (!chunk->last) {
            EXPECT_EQ(chunk->length(), 10000);
        }
        EXPECT_GT(chunk->length(), 0);
    }
    EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace hark
