// A recording of which other threads decode parts has the samples, errors and losses of one that a
// single thread decodes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "audio/read_ahead.h"
#include "core/error.h"
#include "support/audio.h"
#include "support/process.h"
#include "support/recordings.h"

namespace hark {
namespace {

// Decodes each part as soon as it is offered.
class EagerHelpers : public Helpers {
  public:
    void offer(std::weak_ptr<SharedPart> part) override {
        ++parts;
        part.lock()->decode();
    }
    int parts = 0;
};

struct Result {
    std::vector<float> samples;
    std::vector<int> blocks;  // rate, channels and samples of each
    std::string error, loss;
    bool operator==(const Result&) const = default;
};

Result decode_file(const std::string& path, Helpers* helpers) {
    Result result;
    try {
        Input input(path);
        const std::unique_ptr<Decoder> decoder = open_decoder(input, 0, helpers);
        AudioBlock block;
        while (decoder->next(block)) {
            result.blocks.insert(result.blocks.end(), {block.rate, block.channels,
                                                       static_cast<int>(block.samples.size())});
            result.samples.insert(result.samples.end(), block.samples.begin(), block.samples.end());
        }
        result.loss = decoder->loss();
    } catch (const Error& error) {
        result.error = error.what();
    }
    return result;
}

// Returns the number of parts.
int expect_same(const std::string& path) {
    EagerHelpers helpers;
    const Result parts = decode_file(path, &helpers), whole = decode_file(path, nullptr);
    EXPECT_EQ(parts.error, whole.error) << path;
    EXPECT_EQ(parts.loss, whole.loss) << path;
    EXPECT_EQ(parts.blocks, whole.blocks) << path;
    // Bit by bit: NaN too.
    EXPECT_TRUE(parts.samples.size() == whole.samples.size() &&
                std::memcmp(parts.samples.data(), whole.samples.data(),
                            whole.samples.size() * sizeof(float)) == 0)
        << path;
    return helpers.parts;
}

// The sample again and again.
std::string long_mp3(const char* name, int copies) {
    const std::string once = test::read_text(test::samples_dir() / name);
    std::string bytes;
    for (int i = 0; i < copies; ++i) bytes += once;
    return bytes;
}

TEST(SharedParts, AreWhatOneThreadDecodes) {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "long.mp3";
    for (const char* name : {"story.mp3", "company.mp3", "jardin.mp3"}) {
        test::write_text(path, long_mp3(name, 16));
        EXPECT_GT(expect_same(path), 0) << name;
    }
    for (const char* name : {"family.flac", "forest.ogg", "news.mp4", "rain.mkv", "room.m4a",
                             "ship.webm", "hat.wav", "story.mp3"})
        EXPECT_EQ(expect_same(test::samples_dir() / name), 0) << name;
}

TEST(SharedParts, OfEveryCodecThatHasThem) {
    if (test::run_shell("command -v ffmpeg").exit_code != 0) GTEST_SKIP() << "no ffmpeg here";
    const test::TemporaryDirectory directory;
    const std::string source = directory.path() / "source.mp3";
    test::write_text(source, long_mp3("story.mp3", 4));
    // Noise, whose packets take all bits that they can, and speech, whose packets lend bits.
    const std::string noise =
        "-f lavfi -i 'anoisesrc=d=30:c=pink:a=0.3:seed=7,volume=volume=0.5+0.5*sin(t):eval=frame'";
    struct Case {
        std::string input, options, name;
        bool has_parts = true;
    };
    const std::string speech = "-i '" + source + "'";
    const Case cases[] = {
        {speech, "-t 30 -ac 2 -ar 44100 -c:a libmp3lame -b:a 128k", "a.mp3"},
        {noise, "-t 30 -ac 2 -ar 44100 -c:a libmp3lame -b:a 128k", "noise.mp3"},
        {speech, "-t 30 -ac 2 -ar 48000 -c:a libmp3lame -q:a 2", "vbr.mp3"},
        {noise, "-t 30 -ac 2 -ar 48000 -c:a libmp3lame -q:a 4", "noise_vbr.mp3"},
        {speech, "-t 60 -ac 1 -ar 22050 -c:a libmp3lame -q:a 9", "low.mp3"},
        {speech, "-ac 1 -ar 8000 -c:a libmp3lame -b:a 8k", "telephone.mp3"},
        {noise, "-t 30 -ac 2 -ar 32000 -c:a libmp3lame -b:a 320k -joint_stereo 0", "high.mp3"},
        {speech, "-t 30 -ac 2 -ar 44100 -c:a libmp3lame -abr 1 -b:a 96k -write_xing 0", "abr.mp3"},
        {speech, "-t 30 -ac 2 -ar 44100 -c:a libmp3lame", "a.mkv"},
        {speech, "-t 30 -ac 2 -ar 44100 -c:a flac", "a.flac"},
        {noise, "-t 30 -ac 1 -ar 96000 -c:a flac -sample_fmt s32", "high.flac"},
        {speech, "-t 30 -ac 2 -ar 44100 -c:a flac", "flac.ogg"},
        {speech, "-t 30 -ac 2 -ar 48000 -c:a alac", "a.m4a"},
        {speech, "-t 30 -ac 2 -ar 44100 -c:a mp2", "a.mp2", false},
        {speech, "-t 30 -ac 2 -ar 44100 -c:a aac", "aac.m4a", false},
    };
    for (const Case& one : cases) {
        const std::string path = directory.path() / one.name;
        ASSERT_EQ(test::run_shell("ffmpeg -y -nostdin -v error " + one.input + " " + one.options +
                                  " '" + path + "'")
                      .exit_code,
                  0)
            << one.name;
        EXPECT_EQ(expect_same(path) > 0, one.has_parts) << one.name;
    }
}

// Bits changed, pieces zeroed, left out or twice.
void damage(std::string& bytes, test::SplitMix64& random) {
    const auto below = [&](size_t end) { return static_cast<size_t>(random.draw() % end); };
    const size_t times = 1 + below(20);
    for (size_t i = 0; i < times; ++i) {
        const size_t at = below(bytes.size()), length = 1 + below(3000);
        switch (below(5)) {
            case 0:
                bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8));
                break;
            case 1:
                for (size_t k = at; k < std::min(at + length, bytes.size()); ++k) bytes[k] = 0;
                break;
            case 2:
                bytes.erase(at, length);
                break;
            case 3:
                bytes.insert(at, bytes.substr(below(bytes.size()), length));
                break;
            default:
                for (size_t k = at; k < std::min(at + length, bytes.size()); ++k)
                    bytes[k] = static_cast<char>(random.draw());
        }
    }
}

TEST(SharedParts, OfDamagedRecordings) {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "damaged.mp3";
    test::SplitMix64 random(1);
    int parts = 0;
    for (const auto& [name, copies] : {std::pair{"story.mp3", 5}, std::pair{"company.mp3", 30}}) {
        const std::string whole = long_mp3(name, copies);
        for (int i = 0; i < 6; ++i) {
            std::string bytes = whole;
            damage(bytes, random);
            test::write_text(path, bytes);
            parts += expect_same(path);
        }
        test::write_text(path, whole.substr(0, whole.size() * 7 / 10));
        parts += expect_same(path);
    }
    EXPECT_GT(parts, 14);
}

// What cannot be read in the middle is an error after what came before.
TEST(SharedParts, OfAnInputThatBreaks) {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "long.mp3";
    test::write_text(path, long_mp3("story.mp3", 6));
    const auto broken = [&](Helpers* helpers) {
        const int fd = ::open(path.c_str(), O_RDONLY);
        Input input(fd, "a recording");
        const std::unique_ptr<Decoder> decoder = open_decoder(input, 0, helpers);
        AudioBlock block;
        size_t samples = 0;
        EXPECT_TRUE(decoder->next(block));
        samples += block.samples.size();
        const int unreadable = ::open("/dev/null", O_WRONLY);
        ::dup2(unreadable, fd);
        ::close(unreadable);
        std::string error;
        try {
            while (decoder->next(block)) samples += block.samples.size();
        } catch (const Error& failure) {
            error = failure.what();
        }
        ::close(fd);
        EXPECT_GT(samples, 0u);
        return error;
    };
    EagerHelpers helpers;
    EXPECT_NE(broken(nullptr).find("a recording: cannot read"), std::string::npos);
    EXPECT_EQ(broken(&helpers), broken(nullptr));
    EXPECT_GT(helpers.parts, 0);
}

std::vector<Chunk> read_all(const std::vector<std::string>& paths, int jobs,
                            const ReadOptions& options = {}) {
    ReadAhead input(paths, options, 30 * kSampleRate, jobs, int64_t{1} << 26);
    std::vector<Chunk> all;
    while (std::optional<Chunk> chunk = input.next()) all.push_back(std::move(*chunk));
    return all;
}

TEST(SharedParts, OfSeveralThreadsAndInputs) {
    const test::TemporaryDirectory directory;
    const std::string first = directory.path() / "first.mp3", cut = directory.path() / "cut.mp3";
    test::write_text(first, long_mp3("story.mp3", 6));
    test::write_text(cut, long_mp3("company.mp3", 9).substr(0, 300000));
    const std::vector<std::string> paths = {first, test::samples_dir() / "hat.wav", cut, "none",
                                            first};
    const auto one = test::join(read_all(paths, 1));
    ASSERT_EQ(one.size(), 5u);
    for (const int jobs : {2, 7}) {
        const auto several = test::join(read_all(paths, jobs));
        ASSERT_EQ(several.size(), 5u);
        for (const auto& [id, whole] : one) {
            EXPECT_TRUE(several.at(id).values == whole.values) << id;
            EXPECT_EQ(several.at(id).error, whole.error);
            EXPECT_EQ(several.at(id).chunks, whole.chunks);
        }
    }
    // A part that is not wanted any more is dropped, and so is all if the reader leaves.
    ReadOptions options;
    options.duration = 1;
    EXPECT_EQ(test::join(read_all({first, first}, 4, options))["2"].values.size(), 16000u);
    ReadAhead left({first}, {}, 30 * kSampleRate, 4, int64_t{1} << 26);
    EXPECT_TRUE(left.next().has_value());
}

}  // namespace
}  // namespace hark
