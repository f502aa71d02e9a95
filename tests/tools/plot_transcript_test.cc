// pipelines/plot_transcript-transcript.sh: pictures where gnuplot is installed, and what it says of
// what it cannot draw.
#include <gtest/gtest.h>

#include <map>

#include "support/expect.h"
#include "support/process.h"
#include "tools/pipelines.h"

using namespace hark::test;
namespace fs = std::filesystem;

namespace {

std::string script() {
    return "'" + (source_dir() / "pipelines/plot-transcript.sh").string() + "' ";
}

std::string sample_argument(const std::string& name) {
    return "'" + (samples_dir() / name).string() + "' ";
}

ProcessResult plot_transcript(const std::string& arguments) {
    return run_shell(script() + arguments);
}

// A PNG's pixels, by how often each colour comes.
struct Picture {
    uint32_t width = 0, height = 0;
    std::map<std::string, size_t> colours;  // by red, green, blue
};

Picture picture_of(const std::string& bytes) {
    Picture picture;
    EXPECT_EQ(bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
    const auto number = [&](size_t at) {
        uint32_t value = 0;
        for (size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes.at(i));
        return value;
    };
    picture.width = number(16);
    picture.height = number(20);
    const std::string pixels =
        run_shell("ffmpeg -v error -f png_pipe -i - -f rawvideo -pix_fmt rgb24 -", bytes).out;
    EXPECT_EQ(pixels.size(), size_t{3} * picture.width * picture.height);
    for (size_t i = 0; i + 2 < pixels.size(); i += 3) ++picture.colours[pixels.substr(i, 3)];
    return picture;
}

const std::string kSpeech = "\x3f\x9b\x4f", kWord = "\x10\x10\x10", kSilence{"\0\0\x0a", 3};

}  // namespace

TEST(PlotTranscript, DrawsSpeechAndWords) {
    if (!has_command("gnuplot")) GTEST_SKIP() << "gnuplot is not installed";
    const TemporaryDirectory folder;
    // Called after the recording, in the current folder.
    fs::copy_file(samples_dir() / "sea.wav", folder.path() / "it's \"sea\".wav");
    const auto draw = [&] {
        const ProcessResult result = run_shell("cd '" + folder.path().string() + "' && " +
                                               script() + "\"it's \\\"sea\\\".wav\"" + kDemoFlags);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        EXPECT_EQ(result.err + result.out, "");
        return read_text(folder.path() / "it's \"sea\".png");
    };
    const std::string whole = draw();
    EXPECT_EQ(draw(), whole);
    // The words of a short recording are one line.
    Picture sea = picture_of(whole);
    EXPECT_EQ(sea.width, 1600u);
    EXPECT_EQ(sea.height, 375u);
    EXPECT_GT(sea.colours.size(), 1000u);      // the spectrogram's
    EXPECT_GT(sea.colours[kSpeech], 7'000u);   // of a bar of 11,488 pixels
    EXPECT_GT(sea.colours[kWord], 1000u);      // letters and lines

    const fs::path out = folder.path() / "out.png";
    EXPECT_EQ(plot_transcript(sample_argument("story.mp3") + "'" + out.string() + "'" + kDemoFlags)
                  .exit_code,
              0);
    const Picture story = picture_of(read_text(out));  // two strips
    EXPECT_EQ(story.width, 1600u);
    EXPECT_GT(story.height, 2 * 375u - 70);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 3);
}

TEST(PlotTranscript, DrawsSilenceToo) {
    if (!has_command("gnuplot")) GTEST_SKIP() << "gnuplot is not installed";
    const TemporaryDirectory folder;
    const ProcessResult result =
        plot_transcript(sample_argument("silence.wav") + "'" +
                        (folder.path() / "out.png").string() + "'" + kDemoFlags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    Picture silence = picture_of(read_text(folder.path() / "out.png"));
    EXPECT_EQ(silence.height, 375u);
    EXPECT_GT(silence.colours[kSilence], 200'000u);  // of the spectrogram's 215,400
    EXPECT_LT(silence.colours[kSpeech], 400u);       // the legend's
}

TEST(PlotTranscript, NamesWhatItCannotDraw) {
    if (!has_command("gnuplot")) GTEST_SKIP() << "gnuplot is not installed";
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "out.png";
    const std::string to = "'" + out.string() + "'";
    const std::string text = "'" + (folder.path() / "text.wav").string() + "' ";
    const std::string hours = "'" + (folder.path() / "hours.wav").string() + "' ";
    write_text(folder.path() / "text.wav", "this is no audio at all");
    ASSERT_EQ(
        run_shell("ffmpeg -v error -f lavfi -i anullsrc=r=16000:cl=mono -t 600 " + hours).exit_code,
        0);
    expect_fails_without_output(plot_transcript("none.wav " + to + kDemoFlags), 1,
                                "hark plot transcript: none.wav: cannot read");
    expect_fails_without_output(
        plot_transcript("'" + folder.path().string() + "' " + to + kDemoFlags), 1, "cannot read");
    expect_fails_without_output(plot_transcript(text + to + kDemoFlags), 1, "text.wav");
    expect_fails_without_output(plot_transcript(hours + to + kDemoFlags), 1,
                                "less than 600 seconds, found 600.00");
    expect_fails_without_output(plot_transcript(sample_argument("sea.wav") + to + " --model none"),
                                1, "'none'");
    expect_fails_without_output(
        plot_transcript(sample_argument("sea.wav") + to + kDemoFlags + " --beams 5"), 2, "--beams");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 2);
    expect_fails_without_output(
        plot_transcript(sample_argument("sea.wav") + "'" +
                        (folder.path() / "none/out.png").string() + "'" + kDemoFlags),
        1, "none/out.png");
}

TEST(PlotTranscript, RefusesAPictureThatIsNotPng) {
    const TemporaryDirectory folder;
    const fs::path second = folder.path() / "b.wav";
    write_text(second, "a recording");
    expect_fails_without_output(
        plot_transcript(sample_argument("sea.wav") + "'" + second.string() + "'" + kDemoFlags), 2,
        "b.wav: expected a name that ends in .png");
    EXPECT_EQ(read_text(second), "a recording");
}

TEST(PlotTranscript, SaysWhichPackageIsMissing) {
    const TemporaryDirectory bare;
    fs::create_symlink("/usr/bin/dirname", bare.path() / "dirname");
    expect_fails_without_output(
        run_shell("PATH='" + bare.path().string() + "' /bin/bash " + script() + "a.wav out.png"), 1,
        "gnuplot-nox");
    expect_fails_without_output(plot_transcript(""), 2, "try hark plot transcript --help");
    expect_fails_without_output(plot_transcript("--model demo"), 2,
                                "try hark plot transcript --help");
}
