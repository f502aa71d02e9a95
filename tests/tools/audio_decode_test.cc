// audio-decode's contract, on the real binary.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/audio.h"
#include "support/expect.h"
#include "support/process.h"

using namespace hark;
using namespace hark::test;

namespace {

std::string sample(const std::string& name) { return samples_dir() / name; }

ProcessResult decode(const std::vector<std::string>& arguments, const std::string& input = "") {
    return run_tool("audio-decode", arguments, input);
}

std::map<std::string, Whole> recordings_of(const ProcessResult& result) {
    return join(read_chunks(result.out, "audio"));
}

const std::vector<std::string> kFormats = {"harbour.wav", "story.mp3", "family.flac", "forest.ogg",
                                           "news.mp4",    "rain.mkv",  "room.m4a",    "ship.webm"};

std::vector<std::string> all_formats() {
    std::vector<std::string> files;
    for (const std::string& name : kFormats) files.push_back(sample(name));
    return files;
}

}  // namespace

TEST(AudioDecode, WritesRecordingsInTheOrderOfItsArgumentsWhateverTheJobs) {
    std::vector<std::string> arguments = all_formats();
    arguments.insert(arguments.begin(), {"--chunk", "1", "--jobs", "1"});
    const ProcessResult one = decode(arguments);
    ASSERT_EQ(one.exit_code, 0) << one.err;
    EXPECT_EQ(one.err, "");
    for (const char* jobs : {"3", "8", "100"}) {
        arguments[3] = jobs;
        EXPECT_TRUE(decode(arguments).out == one.out) << jobs;
    }
    int64_t recording = 0;
    std::string current;
    for (const Chunk& chunk : read_chunks(one.out, "audio")) {
        if (chunk.start == 0) {
            current = chunk.recording;
            EXPECT_EQ(current, std::to_string(++recording));
            EXPECT_EQ(chunk.source, sample(kFormats[static_cast<size_t>(recording - 1)]));
        }
        EXPECT_EQ(chunk.recording, current);  // whole, one after another
    }
    EXPECT_EQ(recording, 8);
}

TEST(AudioDecode, APipeGivesWhatTheFileGives) {
    for (const std::string& file : all_formats()) {
        const ProcessResult piped = run_shell("cat '" + file + "' | audio-decode -");
        ASSERT_EQ(piped.exit_code, 0) << file << ": " << piped.err;
        Whole from_pipe = recordings_of(piped).at("1");
        const Whole from_file = recordings_of(decode({file})).at("1");
        EXPECT_EQ(from_pipe.source, "stdin");
        if (file == sample("story.mp3")) {
            // libav leaves the padding at an MP3's end out only where it can seek, at most 1152
            // samples of 22050 Hz here.
            EXPECT_LT(from_pipe.values.size() - from_file.values.size(), 900u);
            from_pipe.values.resize(from_file.values.size() - 100);  // less the filter's reach
            EXPECT_TRUE(std::equal(from_pipe.values.begin(), from_pipe.values.end(),
                                   from_file.values.begin()));
            continue;
        }
        EXPECT_TRUE(from_pipe.values == from_file.values) << file;
        EXPECT_TRUE(run_shell("audio-decode - < '" + file + "'").out == piped.out) << file;
    }
}

TEST(AudioDecode, ChunkZeroIsOneDocument) {
    const std::vector<Chunk> one =
        read_chunks(decode({"--chunk", "0", sample("story.mp3"), sample("hat.wav")}).out, "audio");
    ASSERT_EQ(one.size(), 2u);
    const auto cut = recordings_of(decode({"--chunk", "0.37", sample("story.mp3")}));
    EXPECT_TRUE(cut.at("1").values == join(one).at("1").values);
    EXPECT_GT(cut.at("1").chunks, 50);
}

TEST(AudioDecode, SplitsChannels) {
    const std::string file = sample("two_speakers.flac");
    const auto split = recordings_of(decode({"--split-channels", "--chunk", "1", file}));
    ASSERT_EQ(split.size(), 2u);
    const Whole &left = split.at("1.0"), &right = split.at("1.1");
    EXPECT_EQ(left.channel, "0");
    EXPECT_EQ(right.channel, "1");
    EXPECT_EQ(left.source, file);
    const Whole mixed = recordings_of(decode({file})).at("1");
    ASSERT_EQ(left.values.size(), mixed.values.size());
    ASSERT_EQ(right.values.size(), mixed.values.size());
    double left_only = 0;
    for (size_t i = 0; i < mixed.values.size(); ++i) {
        ASSERT_NEAR(mixed.values[i], (left.values[i] + right.values[i]) / 2, 1e-6);
        if (i < 16000) left_only = std::max<double>(left_only, std::abs(right.values[i]));
    }
    EXPECT_LT(left_only, 0.01);  // the speaker on the right has not begun
}

TEST(AudioDecode, StartAndDuration) {
    const Whole whole = recordings_of(decode({sample("story.mp3")})).at("1");
    const Whole part =
        recordings_of(decode({"--start", "2.5", "--duration", "3", sample("story.mp3")})).at("1");
    ASSERT_EQ(part.values.size(), 48000u);
    EXPECT_TRUE(std::equal(part.values.begin(), part.values.end(), whole.values.begin() + 40000));
    const ProcessResult none = decode({"--track", "3", sample("news.mp4")});
    EXPECT_EQ(none.exit_code, 1);
    expect_contains(none.err, "no audio track 3 (got 1 track, counted from 0)");
}

TEST(AudioDecode, TheTrackThatIsAskedFor) {
    if (!has_command("ffmpeg")) GTEST_SKIP() << "no ffmpeg to make a file of two tracks";
    const TemporaryDirectory directory;
    const std::string two = directory.path() / "two.mkv";
    ASSERT_EQ(run_shell("ffmpeg -nostdin -v error -i '" + sample("hat.wav") + "' -i '" +
                        sample("key.wav") + "' -map 0:a -map 1:a -c:a flac '" + two + "'")
                  .exit_code,
              0);
    EXPECT_TRUE(recordings_of(decode({two})).at("1").values ==
                recordings_of(decode({sample("hat.wav")})).at("1").values);
    EXPECT_TRUE(recordings_of(decode({"--track", "1", two})).at("1").values ==
                recordings_of(decode({sample("key.wav")})).at("1").values);
}

TEST(AudioDecode, OneBadFileOfThreeLeavesTheOthers) {
    const TemporaryDirectory directory;
    const std::string garbage = directory.path() / "garbage.mp3";
    std::string noise;
    for (uint64_t i = 0; i < 9000; ++i) noise += little_endian(i * i * i, 7);
    write_text(garbage, noise);
    const std::string cut = directory.path() / "cut.wav";
    write_text(cut, read_text(sample("harbour.wav")).substr(0, 30000));
    const std::string good = sample("hat.wav"), missing = directory.path() / "none.wav";
    for (const std::string& bad : {garbage, cut, missing, directory.path().string()}) {
        const ProcessResult result = decode({good, bad, sample("key.wav")});
        EXPECT_EQ(result.exit_code, 1);
        const auto recordings = recordings_of(result);
        ASSERT_EQ(recordings.size(), 3u) << bad;
        EXPECT_TRUE(recordings.at("1").values == recordings_of(decode({good})).at("1").values);
        EXPECT_TRUE(recordings.at("3").values ==
                    recordings_of(decode({sample("key.wav")})).at("1").values);
        EXPECT_EQ(recordings.at("1").error + recordings.at("3").error, "");
        const Whole& broken = recordings.at("2");
        EXPECT_EQ(broken.source, bad);
        expect_contains(broken.error, bad + ": ");
        EXPECT_EQ(result.err, "audio-decode: " + broken.error + "\n");
        EXPECT_EQ(broken.values.size(), bad == cut ? (30000u - 44) / 2 : 0u);
    }
    const ProcessResult quiet = decode({"--quiet", missing});
    EXPECT_EQ(quiet.exit_code, 1);
    expect_contains(quiet.err, missing);
    EXPECT_EQ(decode({"--split-channels", missing}).exit_code, 1);
}

// The Info header of this MP3 states 26.7 s.
TEST(AudioDecode, HalfARecordingIsAnErrorUnlessAllowed) {
    const TemporaryDirectory directory;
    const std::string half = directory.path() / "half.mp3", good = sample("hat.wav");
    write_text(half, read_text(sample("story.mp3")).substr(0, 80270));
    const ProcessResult file = decode({half, good}), pipe = decode({"-"}, read_text(half));
    EXPECT_EQ(file.exit_code, 1);
    EXPECT_EQ(file.err, "audio-decode: " + half + ": ends at 13.3 of 26.7 s\n");
    EXPECT_EQ(recordings_of(file).at("1").error, half + ": ends at 13.3 of 26.7 s");
    EXPECT_GT(recordings_of(file).at("1").values.size(), 13u * 16000);
    EXPECT_EQ(recordings_of(file).at("2").error, "");
    EXPECT_EQ(pipe.exit_code, 1);
    EXPECT_EQ(pipe.err, "audio-decode: stdin: ends at 13.3 of 26.7 s\n");
    const ProcessResult allowed = decode({"--allow-truncated", half, good});
    EXPECT_EQ(allowed.exit_code, 0);
    expect_contains(allowed.err, half + ": ends at 13.3 of 26.7 s");
    EXPECT_EQ(recordings_of(allowed).at("1").error, "");
    EXPECT_TRUE(recordings_of(allowed).at("1").values == recordings_of(file).at("1").values);
    EXPECT_EQ(decode({"--allow-truncated", "--quiet", half}).err, "");
}

TEST(AudioDecode, ASampleThatIsNoNumberLeavesTheOtherRecordings) {
    const TemporaryDirectory directory;
    const std::string bad = directory.path() / "nan.wav", good = sample("hat.wav");
    std::string data;
    for (int i = 0; i < 40000; ++i)
        data += little_endian(i == 24000 ? 0x7fc00000 : 0x3dcccccd, 4);  // 0.1
    write_text(bad, wav_file(3, 4, 16000, 1, data));
    const ProcessResult result = decode({good, bad, good});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.err,
              "audio-decode: " + bad + ": at 1.5 s: a sample is not finite (NaN or infinity)\n");
    const auto recordings = recordings_of(result);
    EXPECT_EQ(recordings.at("2").values.size(), 24000u);
    EXPECT_TRUE(recordings.at("1").values == recordings.at("3").values);
    EXPECT_EQ(recordings.at("3").error, "");
}

TEST(AudioDecode, AnEmptyFileIsCalledEmpty) {
    const TemporaryDirectory directory;
    const std::string empty = directory.path() / "empty.wav";
    write_text(empty, "");
    EXPECT_EQ(decode({empty}).err,
              "audio-decode: " + empty + ": the file is empty (expected audio)\n");
    EXPECT_EQ(run_shell("audio-decode - < '" + empty + "'").err,
              "audio-decode: stdin: the file is empty (expected audio)\n");
    EXPECT_EQ(decode({"/dev/null"}).err,
              "audio-decode: /dev/null: the file is empty (expected audio)\n");
}

TEST(AudioDecode, FirstDocumentComesBeforeTheEndOfTheInput) {
    const TemporaryDirectory directory;
    const std::string folder = directory.path();
    std::vector<std::string> files = {folder + "/a.wav"};
    write_text(files[0], noise_wav(1, 60 * 16000));
    if (has_command("ffmpeg")) {
        for (const char* ending : {"mp3", "flac", "ogg", "webm", "mkv", "aac"}) {
            files.push_back(folder + "/a." + ending);
            ASSERT_EQ(
                run_shell("ffmpeg -nostdin -v error -i '" + files[0] + "' '" + files.back() + "'")
                    .exit_code,
                0);
        }
        // An MP4 in fragments, as downloads and live streams come, needs no index at its end.
        files.push_back(folder + "/a.mp4");
        ASSERT_EQ(run_shell("ffmpeg -nostdin -v error -i '" + files[0] +
                            "' -c:a aac -movflags frag_keyframe+empty_moov -frag_duration 1000000 "
                            "'" +
                            files.back() + "'")
                      .exit_code,
                  0);
    }
    for (const std::string& file : files) {
        // The last tenth of the file follows only once the first document has come.
        const ProcessResult result =
            run_shell("cd '" + folder + "'; rm -f go; mkfifo go; size=$(stat -c %s " + file +
                      ");"
                      "{ head -c $((size * 9 / 10)) " +
                      file +
                      "; read < go;"
                      "  tail -c +$((size * 9 / 10 + 1)) " +
                      file +
                      "; } | timeout 60 audio-decode - |"
                      "{ head -c 1920000 | wc -c; echo > go; cat | wc -c; }");
        EXPECT_EQ(result.exit_code, 0) << file << result.err;
        expect_contains(result.out, "1920000\n");
        EXPECT_GT(std::stol(result.out.substr(8)), 1800000) << file;
    }
}

TEST(AudioDecode, WrongCommandLinesExitWith2) {
    const std::string file = sample("hat.wav");
    const std::vector<std::vector<std::string>> wrong = {{"--no-such-flag", file},
                                                         {"--split", file},
                                                         {"--chunk", "x", file},
                                                         {"--chunk", "0.005", file},
                                                         {"--start", "-1", file},
                                                         {"--jobs", "0", file},
                                                         {"--track", "-1", file},
                                                         {"-", "-"},
                                                         {}};
    for (const auto& arguments : wrong) {
        const ProcessResult result = decode(arguments);
        EXPECT_EQ(result.exit_code, 2) << result.err;
        EXPECT_EQ(result.out, "");
        expect_contains(result.err, "audio-decode: ");
        expect_contains(result.err, "--help");
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
    expect_contains(decode({}).err, "- reads standard input");
    // A file whose name looks like a flag.
    const TemporaryDirectory directory;
    write_text(directory.path() / "-dash.wav", read_text(file));
    const std::string folder = "cd '" + directory.path().string() + "' && audio-decode ";
    const ProcessResult dash = run_shell(folder + "*.wav");
    EXPECT_EQ(dash.exit_code, 2);
    expect_contains(dash.err, "for the file of that name write ./-dash.wav");
    for (const char* good : {"./*.wav", "-- *.wav"})
        EXPECT_EQ(run_shell(folder + good).exit_code, 0) << good;
}

TEST(AudioDecode, HelpAndVersionGoToStdout) {
    const ProcessResult help = decode({"--help"}), version = decode({"--version"});
    EXPECT_EQ(help.exit_code, 0);
    const ProcessResult all = decode({"--help-all"});
    expect_contains(help.out, "Examples:");
    EXPECT_LE(std::count(help.out.begin(), help.out.end(), '\n'), 45);
    EXPECT_EQ(version.exit_code, 0);
    EXPECT_EQ(help.err + version.err, "");
    expect_contains(version.out, "audio-decode (hark) ");
    for (const char* flag : {"--jobs", "--start", "--duration", "--track", "--split-channels",
                             "--chunk", "--quiet", "FILE..."})
        expect_contains(all.out, flag);
}

TEST(AudioDecode, EmptyStdinIsAnErrorOfThatRecording) {
    const ProcessResult result = decode({"-", sample("hat.wav")});
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "stdin: no data (expected audio); the stage before has failed");
    EXPECT_EQ(recordings_of(result).size(), 2u);
}

TEST(AudioDecode, RefusesTerminals) {
    if (!has_command("script")) GTEST_SKIP() << "no script command here";
    const std::string file = sample("hat.wav");
    const ProcessResult out = run_shell("script -qec \"audio-decode '" + file + "'\" /dev/null");
    EXPECT_EQ(out.exit_code, 2);
    expect_contains(out.out, "stdout is a terminal");
    const ProcessResult in = run_shell("script -qec 'audio-decode - > /dev/null' /dev/null");
    EXPECT_EQ(in.exit_code, 2);
    expect_contains(in.out, "stdin is a terminal");
}

TEST(AudioDecode, EndsQuietlyWhenNobodyReadsOn) {
    const ProcessResult result =
        run_shell("audio-decode --chunk 1 '" + sample("story.mp3") + "' '" + sample("story.mp3") +
                  "' | head -c 10 > /dev/null; echo ${PIPESTATUS[0]}");
    EXPECT_EQ(result.out, "141\n");  // SIGPIPE
    EXPECT_EQ(result.err, "");
}

TEST(AudioDecode, AUrlIsNoFile) {
    const ProcessResult result = decode({"https://example.org/talk.mp3"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.err,
              "audio-decode: https://example.org/talk.mp3: cannot open: No such file or directory; "
              "type: curl -sL URL | audio-decode -\n");
}

// Loading libav takes most of the time of a short file.
TEST(AudioDecode, PcmInWavDoesWithoutLibav) {
    const auto loads = [](const std::string& command) {
        return run_shell("cd '" + samples_dir().string() + "'; LD_DEBUG=files " + command +
                         " 2>&1 > /dev/null | grep -c 'calling init: .*libavformat'")
            .out;
    };
    EXPECT_EQ(loads("audio-decode sea.wav hat.wav"), "0\n");
    EXPECT_EQ(loads("mel < sea.wav"), "0\n");
    EXPECT_EQ(loads("mel < story.mp3"), "1\n");
    EXPECT_EQ(loads("audio-decode sea.wav story.mp3"), "1\n");
    EXPECT_EQ(loads("audio-decode sea.wav none.wav"), "1\n");
}

TEST(AudioDecode, AFullDiskIsAnError) {
    // The pipe on stdin stays open: the tool must not wait for it before it says so.
    const ProcessResult result = run_shell("cat '" + sample("hat.wav") + "' | audio-decode '" +
                                           sample("story.mp3") + "' - > /dev/full");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "audio-decode: stdout: cannot write: No space left on device");
}

TEST(AudioDecode, FlagsMayStandInAFile) {
    const TemporaryDirectory directory;
    const std::string config = directory.path() / "flags";
    write_text(config, "duration = 0.5\nchunk = 0.1\n");
    const auto got = recordings_of(decode({"--config", config, sample("hat.wav")}));
    EXPECT_EQ(got.at("1").values.size(), 8000u);
    EXPECT_EQ(got.at("1").chunks, 5);
}
