// A recording of which other threads decode parts has the samples, errors and losses of one that a
// single thread decodes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "audio/read_ahead.h"
#include "audio/resampled_part.h"
#include "core/error.h"
#include "support/audio.h"
#include "support/process.h"
#include "support/recordings.h"

namespace hark {
namespace {

// Decodes each part as soon as it is offered.
class EagerHelpers : public Helpers {
  public:
    explicit EagerHelpers(bool split_channels) : split_channels_(split_channels) {}
    std::shared_ptr<PartSink> make_sink(int64_t position) override {
        sinks_.push_back(std::make_shared<ResampledPart>(split_channels_, position));
        return sinks_.back();
    }
    void offer(std::weak_ptr<SharedPart> part) override { part.lock()->decode(); }
    // The parts whose samples were used.
    size_t used() const {
        return static_cast<size_t>(
            std::count_if(sinks_.begin(), sinks_.end(),
                          [](const auto& sink) { return sink->take_resampler() == nullptr; }));
    }
    size_t offered() const { return sinks_.size(); }

  private:
    bool split_channels_;
    std::vector<std::shared_ptr<ResampledPart>> sinks_;
};

std::vector<Chunk> read_input(std::unique_ptr<Input> input, const ReadOptions& options,
                              Helpers* helpers) {
    AudioChunks chunks(std::move(input), "1", options, 30 * kSampleRate, [&](Input& in) {
        return open_decoder(in, static_cast<int>(options.track), helpers);
    });
    std::vector<Chunk> all;
    while (std::optional<Chunk> chunk = chunks.next()) all.push_back(std::move(*chunk));
    return all;
}

void expect_same_chunks(const std::vector<Chunk>& got, const std::vector<Chunk>& expected,
                        const std::string& path) {
    ASSERT_EQ(got.size(), expected.size()) << path;
    for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].error, expected[i].error) << path;
        EXPECT_EQ(got[i].warning, expected[i].warning) << path;
        EXPECT_EQ(got[i].recording, expected[i].recording) << path;
        ASSERT_EQ(got[i].length(), expected[i].length()) << path << ", chunk " << i;
        const Tensor a = got[i].values(), b = expected[i].values();
        EXPECT_EQ(std::memcmp(a.data, b.data, a.bytes()), 0) << path << ", chunk " << i;
    }
}

// Returns the number of parts that were used and offered.
std::pair<size_t, size_t> expect_same(const std::string& path, const ReadOptions& options = {}) {
    EagerHelpers helpers(options.split_channels);
    expect_same_chunks(read_input(std::make_unique<Input>(path), options, &helpers),
                       read_input(std::make_unique<Input>(path), options, nullptr), path);
    return {helpers.used(), helpers.offered()};
}

// The frames of the sample again and again, without its tags.
std::string long_mp3(const char* name, int copies) {
    std::string once = test::read_text(test::samples_dir() / name), bytes;
    const auto next_frame = [&](size_t from) { return once.find("\xff\xf3", from); };
    once.erase(0, next_frame(next_frame(0) + 4));
    for (int i = 0; i < copies; ++i) bytes += once;
    return bytes;
}

TEST(SharedParts, AreWhatOneThreadDecodes) {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "long.mp3";
    for (const char* name : {"story.mp3", "company.mp3", "jardin.mp3"}) {
        test::write_text(path, long_mp3(name, 16));
        const auto [used, offered] = expect_same(path);
        EXPECT_EQ(used, offered) << name;
        EXPECT_GT(used, 0u) << name;
    }
    for (const char* name :
         {"family.flac", "forest.ogg", "news.mp4", "rain.mkv", "room.m4a", "ship.webm", "hat.wav"})
        EXPECT_EQ(expect_same(test::samples_dir() / name).second, 0u) << name;
}

TEST(SharedParts, OfEveryCodecThatHasThem) {
    if (test::run_shell("command -v ffmpeg").exit_code != 0) GTEST_SKIP() << "no ffmpeg here";
    const test::TemporaryDirectory directory;
    const std::string source = directory.path() / "source.mp3";
    test::write_text(source, long_mp3("story.mp3", 4));
    // Noise, whose packets take all bits that they can, and speech, whose packets lend bits.
    const std::string noise =
        "-f lavfi -i 'anoisesrc=d=20:c=pink:a=0.3:seed=7,volume=volume=0.5+0.5*sin(t):eval=frame'";
    struct Case {
        std::string input, options, name;
        bool has_parts = true;
    };
    const std::string speech = "-i '" + source + "'";
    const Case cases[] = {
        {speech, "-t 20 -ac 2 -ar 44100 -c:a libmp3lame -b:a 128k", "a.mp3"},
        {noise, "-t 20 -ac 2 -ar 44100 -c:a libmp3lame -b:a 128k", "noise.mp3"},
        {speech, "-t 20 -ac 2 -ar 48000 -c:a libmp3lame -q:a 2", "vbr.mp3"},
        {noise, "-t 20 -ac 2 -ar 48000 -c:a libmp3lame -q:a 4", "noise_vbr.mp3"},
        {speech, "-t 40 -ac 1 -ar 22050 -c:a libmp3lame -q:a 9", "low.mp3"},
        {speech, "-ac 1 -ar 8000 -c:a libmp3lame -b:a 8k", "telephone.mp3"},
        {noise, "-t 20 -ac 2 -ar 32000 -c:a libmp3lame -b:a 320k -joint_stereo 0", "high.mp3"},
        {speech, "-t 20 -ac 2 -ar 44100 -c:a libmp3lame -abr 1 -b:a 96k -write_xing 0", "abr.mp3"},
        {speech, "-t 20 -ac 2 -ar 44100 -c:a libmp3lame", "a.mkv"},
        {speech, "-t 20 -ac 2 -ar 44100 -c:a flac", "a.flac"},
        {noise, "-t 20 -ac 1 -ar 96000 -c:a flac -sample_fmt s32", "high.flac"},
        {speech, "-t 20 -ac 2 -ar 44100 -c:a flac", "flac.ogg"},
        {speech, "-t 20 -ac 2 -ar 44100 -c:a flac", "flac.mkv", false},
        {"-f lavfi -i anullsrc=r=44100:cl=stereo", "-t 40 -c:a flac", "silence.flac"},
        {speech, "-t 20 -ac 2 -ar 48000 -c:a alac", "a.m4a"},
        {speech, "-t 20 -ac 2 -ar 44100 -c:a mp2", "a.mp2", false},
        {speech, "-t 20 -ac 2 -ar 44100 -c:a aac", "aac.m4a", false},
    };
    for (const Case& one : cases) {
        const std::string path = directory.path() / one.name;
        ASSERT_EQ(test::run_shell("ffmpeg -y -nostdin -v error " + one.input + " " + one.options +
                                  " '" + path + "'")
                      .exit_code,
                  0)
            << one.name;
        const auto [used, offered] = expect_same(path);
        EXPECT_EQ(used, offered) << one.name;
        EXPECT_EQ(used > 0, one.has_parts) << one.name;
    }
}

// Bits changed, pieces zeroed, left out or twice.
void damage(std::string& bytes, test::SplitMix64& random) {
    const auto below = [&](size_t end) { return static_cast<size_t>(random.draw() % end); };
    const size_t times = 1 + below(4);
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
    size_t parts = 0;
    for (const auto& [name, copies] : {std::pair{"story.mp3", 6}, std::pair{"company.mp3", 42}}) {
        const std::string whole = long_mp3(name, copies);
        for (int i = 0; i < 4; ++i) {
            std::string bytes = whole;
            damage(bytes, random);
            test::write_text(path, bytes);
            parts += expect_same(path).first;
        }
        test::write_text(path, whole.substr(0, whole.size() * 7 / 10));
        parts += expect_same(path).first;
    }
    EXPECT_GT(parts, 14u);
}

// What cannot be read in the middle is an error after what came before.
TEST(SharedParts, OfAnInputThatBreaks) {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "long.mp3";
    test::write_text(path, long_mp3("story.mp3", 6));
    const auto broken = [&](Helpers* helpers) {
        const int fd = ::open(path.c_str(), O_RDONLY), unreadable = ::open("/dev/null", O_WRONLY);
        // The container has been opened when the codec is: from then on nothing can be read.
        AudioChunks chunks(std::make_unique<Input>(fd, "a recording"), "1", {}, 30 * kSampleRate,
                           [&](Input& in) {
                               std::unique_ptr<Decoder> decoder = open_decoder(in, 0, helpers);
                               ::dup2(unreadable, fd);
                               return decoder;
                           });
        std::vector<Chunk> all;
        while (std::optional<Chunk> chunk = chunks.next()) all.push_back(std::move(*chunk));
        ::close(fd);
        ::close(unreadable);
        return all;
    };
    EagerHelpers helpers(false);
    const std::vector<Chunk> alone = broken(nullptr);
    EXPECT_NE(alone.back().error.find("a recording: cannot read"), std::string::npos);
    expect_same_chunks(broken(&helpers), alone, path);
}

// The options that say what is read, a limit in the middle of a part, and every channel.
TEST(SharedParts, WithOptions) {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "long.mp3", flac = directory.path() / "a.flac";
    test::write_text(path, long_mp3("story.mp3", 6));
    ReadOptions options;
    options.start = 70.1;
    EXPECT_GT(expect_same(path, options).first, 0u);
    options.max_hours = 91.3 / 3600;
    EXPECT_GT(expect_same(path, options).first, 0u);
    options.allow_truncated = true;
    const std::string bytes = test::read_text(path);
    test::write_text(path, bytes.substr(0, bytes.size() * 2 / 3));
    options.max_hours.reset();
    EXPECT_GT(expect_same(path, options).first, 0u);
    if (test::run_shell("command -v ffmpeg").exit_code != 0) GTEST_SKIP() << "no ffmpeg here";
    ASSERT_EQ(
        test::run_shell("ffmpeg -nostdin -v error -i '" + path +
                        "' -t 40 -ac 2 -ar 48000 -af pan='stereo|c0=c0|c1=0.3*c0' '" + flac + "'")
            .exit_code,
        0);
    options = {.split_channels = true};
    EXPECT_GT(expect_same(flac, options).first, 0u);
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
    // All is dropped if the reader leaves.
    ReadAhead left({first}, {}, 30 * kSampleRate, 4, int64_t{1} << 26);
    EXPECT_TRUE(left.next().has_value());
}

// Packets of silence are too short for a pre-roll: such a run is the recording's own decoder's,
// also while a thread decodes the run before it.
TEST(SharedParts, OfNoiseAndSilenceInTurn) {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "turns.mp3";
    ASSERT_EQ(test::run_shell("ffmpeg -y -nostdin -v error -f lavfi -i "
                              "'anoisesrc=d=200:r=22050:seed=3,volume=volume=if(lt(mod(t\\,39)\\,"
                              "13)\\,0.5\\,0):eval=frame' -ac 1 -c:a libmp3lame -q:a 9 '" +
                              path + "'")
                  .exit_code,
              0);
    EagerHelpers helpers(false);
    const std::vector<Chunk> alone = read_input(std::make_unique<Input>(path), {}, nullptr);
    expect_same_chunks(read_input(std::make_unique<Input>(path), {}, &helpers), alone, path);
    EXPECT_GT(helpers.used(), 0u);
    const auto one = test::join(read_all({path}, 1));
    for (const int jobs : {2, 3, 2, 3})
        EXPECT_TRUE(test::join(read_all({path}, jobs))["1"].values == one.at("1").values) << jobs;
}

}  // namespace
}  // namespace hark
