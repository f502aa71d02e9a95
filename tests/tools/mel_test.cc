// mel's contract, on the real binary.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "audio/log_mel.h"
#include "support/audio.h"
#include "support/expect.h"
#include "support/process.h"
#include "support/recordings.h"

using namespace hark;
using namespace hark::test;

namespace {

std::string sample_path(const std::string& name) { return samples_dir() / name; }

ProcessResult mel(const std::vector<std::string>& arguments, const std::string& input) {
    return run_tool("mel", arguments, input);
}

std::map<std::string, Whole> mels_of(const ProcessResult& result) {
    return join(read_chunks(result.out, "mel"));
}

std::vector<float> speech(uint64_t seed, double seconds) {
    return assemble_recording(seed, seconds, samples_dir());
}

std::string s16(const std::vector<float>& samples) {
    std::string data;
    for (float x : samples) data += little_endian(static_cast<uint64_t>(std::lround(x * 32768)), 2);
    return data;
}

std::string f32(const std::vector<float>& samples) {
    return {reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(float)};
}

// A whole recording as documents of a number of samples.
std::string audio_stream(const std::string& id, const std::vector<float>& samples, size_t step) {
    std::string stream;
    for (size_t at = 0;; at += step) {
        const size_t end = std::min(at + step, samples.size());
        const std::vector<float> part(samples.begin() + static_cast<ptrdiff_t>(at),
                                      samples.begin() + static_cast<ptrdiff_t>(end));
        stream += audio_document(id, static_cast<int64_t>(at), part, end == samples.size());
        if (end == samples.size()) return stream;
    }
}

std::vector<float> frames_of(const std::vector<float>& samples, int n_mels) {
    LogMel log_mel(n_mels);
    std::vector<float> frames;
    log_mel.push(samples, frames);
    log_mel.finish(frames);
    return frames;
}

}  // namespace

TEST(Mel, AStreamAFileAndRawPcmGiveTheSame) {
    const std::vector<float> samples = speech(11, 47.123);
    const std::vector<float> expected = frames_of(samples, 80);
    const std::string wav = wav_file(1, 2, 16000, 1, s16(samples));
    const std::string unknown = wav_file(1, 2, 16000, 1, s16(samples), 0xffffffff);
    const std::vector<std::pair<std::vector<std::string>, std::string>> ways = {
        {{}, audio_stream("1", samples, 480000)},
        {{}, audio_stream("1", samples, 12345)},
        {{"--chunk", "1"}, audio_stream("1", samples, 480000)},
        {{"--chunk", "0"}, audio_stream("1", samples, 480000)},
        {{}, wav},
        {{}, unknown},
        {{"--chunk", "0"}, wav},
        {{"--raw", "s16le"}, s16(samples)},
        {{"--threads", "3"}, wav},
        {{"--device", "cpu", "--threads", "1"}, audio_stream("1", samples, 480000)},
        {{"--raw", "f32le", "--sample-rate", "16000", "--channels", "1"}, f32(samples)},
    };
    for (const auto& [arguments, input] : ways) {
        const ProcessResult result = mel(arguments, input);
        ASSERT_EQ(result.exit_code, 0) << result.err;
        EXPECT_EQ(result.err, "");
        const Whole got = mels_of(result).at("1");
        EXPECT_TRUE(got.values == expected);
        EXPECT_EQ(got.last.at("content_frames"), "4712");
        EXPECT_EQ(got.last.at("sample_rate"), "16000");
        EXPECT_EQ(got.last.count("normalized"), 0u);
    }
}

TEST(Mel, DocumentsHoldAHundredFramesASecond) {
    const ProcessResult result = mel({}, audio_stream("1", speech(3, 75), 480000));
    const std::vector<Chunk> chunks = read_chunks(result.out, "mel");
    ASSERT_EQ(chunks.size(), 3u);
    EXPECT_EQ(chunks[0].length(), 3000);
    EXPECT_EQ(chunks[1].length(), 3000);
    EXPECT_EQ(chunks[1].start, 3000);
    EXPECT_EQ(chunks[2].length(), 1502);
    EXPECT_EQ(chunks[2].source, "1.wav");
    EXPECT_EQ(chunks[2].document.header.metadata.at("content_frames"), "7500");
}

TEST(Mel, NormalizesAsWhisperDoes) {
    const std::vector<float> samples = speech(5, 40);
    std::vector<float> expected = frames_of(samples, 128);
    normalize_log_mel(expected);
    const ProcessResult result =
        mel({"--normalize", "--mels", "128"}, audio_stream("1", samples, 480000));
    const Whole got = mels_of(result).at("1");
    EXPECT_EQ(got.chunks, 1);
    EXPECT_EQ(got.n_mels, 128);
    EXPECT_TRUE(got.values == expected);
    EXPECT_EQ(got.last.at("normalized"), "true");
}

TEST(Mel, ReadsEveryFileOfTheSamplesFromAPipe) {
    for (const char* name : {"harbour.wav", "telephone.wav", "story.mp3", "family.flac",
                             "forest.ogg", "news.mp4", "rain.mkv", "room.m4a", "ship.webm"}) {
        const ProcessResult direct = run_shell("cat '" + sample_path(name) + "' | mel");
        const ProcessResult staged =
            run_shell("cat '" + sample_path(name) + "' | audio-decode - | mel");
        ASSERT_EQ(direct.exit_code, 0) << name << ": " << direct.err;
        const Whole got = mels_of(direct).at("1");
        EXPECT_EQ(got.source, "stdin");
        EXPECT_TRUE(direct.out == staged.out) << name;
    }
}

TEST(Mel, ReadsWhatFfmpegWritesToAPipe) {
    if (!has_command("ffmpeg")) GTEST_SKIP() << "no ffmpeg here";
    const std::string from = "ffmpeg -nostdin -v error -t 8 -i '" + sample_path("story.mp3") + "' ";
    const ProcessResult wav = run_shell(from + "-f wav - | mel");
    ASSERT_EQ(wav.exit_code, 0) << wav.err;
    const ProcessResult raw =
        run_shell(from + "-f s16le - | mel --raw s16le --sample-rate 22050 --channels 1");
    const Whole whole = mels_of(wav).at("1");
    EXPECT_TRUE(whole.values == mels_of(raw).at("1").values);
    for (const char* format : {"-c:a pcm_f32le -f wav", "-rf64 always -f wav", "-f w64", "-f flac",
                               "-f ogg", "-f mp3", "-f adts", "-f matroska", "-f au", "-f aiff"}) {
        const ProcessResult result = run_shell(from + format + " - | mel");
        EXPECT_EQ(result.exit_code, 0) << format << ": " << result.err;
        EXPECT_NEAR(static_cast<double>(mels_of(result).at("1").values.size()),
                    static_cast<double>(whole.values.size()), 80 * 12)
            << format;
    }
}

TEST(Mel, KeepsInterleavedRecordingsApartAndPassesThemOn) {
    const std::vector<float> a = speech(1, 2), b = speech(2, 3);
    const std::vector<float> a1(a.begin(), a.begin() + 16000), a2(a.begin() + 16000, a.end());
    const std::string stream = audio_document("a", 0, a1, false, {{"language", "de"}}) +
                               audio_document("b", 0, b, true) +
                               audio_document("a", 16000, a2, true, {{"channel", "1"}}) +
                               audio_document("a", 0, b, true);  // the id is free again
    const ProcessResult result = mel({"--chunk", "1"}, stream);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::vector<Chunk> chunks = read_chunks(result.out, "mel");
    const auto first = [&](const std::string& id) {
        for (const Chunk& chunk : chunks)
            if (chunk.recording == id) return chunk;
        throw std::runtime_error("no such recording");
    };
    EXPECT_EQ(first("a").document.header.metadata.at("language"), "de");
    EXPECT_EQ(first("b").document.header.metadata.count("language"), 0u);
    EXPECT_TRUE(join(chunks).at("b").values == frames_of(b, 80));
    std::vector<float> twice = frames_of(a, 80);
    const std::vector<float> again = frames_of(b, 80);
    twice.insert(twice.end(), again.begin(), again.end());
    EXPECT_TRUE(join(chunks).at("a").values == twice);
}

TEST(Mel, PassesABrokenRecordingOn) {
    const std::vector<float> samples = speech(1, 1);
    const std::string stream = audio_document("a", 0, samples, true, {}, "a.wav: it broke") +
                               audio_document("b", 0, samples, true) +
                               audio_document("c", 0, {}, true, {}, "c.wav: no such file");
    const ProcessResult result = mel({}, stream);
    EXPECT_EQ(result.exit_code, 0);  // the stage before has failed and said so
    EXPECT_EQ(result.err, "");
    const auto got = mels_of(result);
    EXPECT_EQ(got.at("a").error, "a.wav: it broke");
    EXPECT_TRUE(got.at("a").values == frames_of(samples, 80));
    EXPECT_EQ(got.at("b").error, "");
    EXPECT_EQ(got.at("c").error, "c.wav: no such file");
    EXPECT_EQ(got.at("c").last.at("content_frames"), "0");
}

TEST(Mel, AStreamThatEndsTooSoonIsAnErrorAndNothingIsLost) {
    const std::vector<float> samples = speech(1, 3);
    const std::string whole = audio_stream("a", samples, 16000);
    const std::string one = audio_stream("a", samples, 48000);
    struct Case {
        std::string stream, message;
        int64_t content;
    };
    const std::vector<Case> cases = {
        {whole.substr(0, whole.size() - 1), "document 3: the stream ends inside the document", 200},
        {whole.substr(0, whole.size() / 3 + 5), "document 2: the stream ends inside the header",
         100},
        {audio_document("a", 0, samples, false), "ends before the last document of 'a'", 300},
        {audio_document("a", 0, samples, false) + audio_document("a", 7, samples, true),
         "has a gap (got a chunk at 7, expected 48000)", 300},
    };
    for (const Case& c : cases) {
        const ProcessResult result = mel({}, c.stream);
        EXPECT_EQ(result.exit_code, 1);
        expect_contains(result.err, "mel: stdin: document ");
        expect_contains(result.err, c.message);
        const Whole got = mels_of(result).at("a");
        expect_contains(got.error, c.message);
        EXPECT_EQ(got.last.at("content_frames"), std::to_string(c.content));
    }
}

TEST(Mel, OtherInputIsAnErrorThatSaysWhatWasExpected) {
    std::string noise;
    for (uint64_t i = 0; i < 9000; ++i) noise += little_endian(i * i * i + 77, 7);
    const std::string mel_stream = mel({}, audio_stream("a", speech(1, 1), 16000)).out;
    std::string nan = f32({0.0f, std::nanf(""), 0.0f});
    const std::string json = "{\"x\":1}";
    const std::vector<std::tuple<std::vector<std::string>, std::string, std::string>> cases = {
        {{}, "", "no data (expected audio); the stage before has failed"},
        {{"--raw", "s16le"}, "", "no data (expected raw PCM); the stage before has failed"},
        {{}, noise, "this is no audio"},
        {{}, "just some words\n", "this is no audio"},
        {{}, mel_stream, "(got mel, expected audio); mel reads what audio-decode writes"},
        {{}, little_endian(json.size(), 8) + json, "document 1"},
        {{}, little_endian(2 << 20, 8) + "{" + std::string(100, ' '), "document 1"},
        {{"--raw", "f32le"}, nan, "not finite"},
    };
    for (const auto& [arguments, input, message] : cases) {
        const ProcessResult result = mel(arguments, input);
        EXPECT_EQ(result.exit_code, 1) << message;
        expect_contains(result.err, "mel: stdin: ");
        expect_contains(result.err, message);
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
}

TEST(Mel, AFileThatBreaksKeepsWhatCame) {
    const std::vector<float> samples = speech(1, 40);
    const std::string wav = wav_file(1, 2, 16000, 1, s16(samples));
    for (const auto& [arguments, input] :
         {std::pair<std::vector<std::string>, std::string>{{}, wav.substr(0, 44 + 2 * 560000)},
          {{"--raw", "s16le"}, s16(samples).substr(0, 2 * 560000 + 1)}}) {
        const ProcessResult result = mel(arguments, input);
        EXPECT_EQ(result.exit_code, 1);
        expect_contains(result.err, "stdin: ends ");
        const Whole got = mels_of(result).at("1");
        expect_contains(got.error, "stdin: ends ");
        EXPECT_EQ(got.last.at("content_frames"), "3500");
    }
}

TEST(Mel, AFileThatEndsTooSoonMayBeAllowed) {
    const std::string half = read_text(sample_path("story.mp3")).substr(0, 80270);
    const ProcessResult result = mel({}, half), allowed = mel({"--allow-truncated"}, half);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.err, "mel: stdin: ends at 13.3 of 26.7 s\n");
    EXPECT_EQ(allowed.exit_code, 0);
    expect_contains(allowed.err, "stdin: ends at 13.3 of 26.7 s");
    EXPECT_TRUE(mels_of(allowed).at("1").values == mels_of(result).at("1").values);
}

TEST(Mel, AStreamThatWasCutInItsFirstHeaderIsCalledCut) {
    const std::string stream = audio_document("a", 0, speech(1, 1), true);
    for (const size_t bytes : {8u, 9u, 10u, 100u}) {
        const ProcessResult result = mel({}, stream.substr(0, bytes));
        EXPECT_EQ(result.exit_code, 1);
        EXPECT_EQ(result.err, "mel: stdin: document 1: the stream ends inside the header\n")
            << bytes;
    }
}

TEST(Mel, WrongCommandLinesExitWith2) {
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{"--no-such-flag"},
                                               {"--norm"},
                                               {"--mels", "40"},
                                               {"--chunk", "-1"},
                                               {"--chunk", "0.001"},
                                               {"--raw", "s24le"},
                                               {"--sample-rate", "8000"},
                                               {"--device", "gpu"},
                                               {"--threads", "-1"},
                                               {"--channels", "2"},
                                               {"--raw", "s16le", "--sample-rate", "10"},
                                               {"file.wav"}}) {
        const ProcessResult result = mel(arguments, audio_stream("1", {}, 1));
        EXPECT_EQ(result.exit_code, 2) << result.err;
        EXPECT_EQ(result.out, "");
        expect_contains(result.err, "mel: ");
        expect_contains(result.err, "--help");
    }
}

TEST(Mel, HelpAndVersionGoToStdout) {
    const ProcessResult help = mel({"--help"}, ""), version = mel({"--version"}, "");
    EXPECT_EQ(help.exit_code, 0);
    const ProcessResult all = mel({"--help-all"}, "");
    expect_contains(help.out, "Examples:");
    EXPECT_LE(std::count(help.out.begin(), help.out.end(), '\n'), 45);
    EXPECT_EQ(version.exit_code, 0);
    EXPECT_EQ(help.err + version.err, "");
    expect_contains(version.out, "mel (hark) ");
    for (const char* flag : {"--mels", "--normalize", "--chunk", "--raw", "--sample-rate",
                             "--channels", "--device", "--threads"})
        expect_contains(all.out, flag);
}

TEST(Mel, AGpuGivesTheSameBytesAndNeverASilentCpu) {
    const std::string stream = audio_stream("1", speech(7, 65), 480000);
    const ProcessResult on_cpu = mel({}, stream), on_gpu = mel({"--device", "cuda"}, stream);
    ASSERT_EQ(on_cpu.exit_code, 0) << on_cpu.err;
    if (on_gpu.exit_code != 0) {
        EXPECT_EQ(on_gpu.exit_code, 1);
        EXPECT_EQ(on_gpu.out, "");
        expect_contains(on_gpu.err, "mel: no GPU");
        GTEST_SKIP() << on_gpu.err;
    }
    EXPECT_TRUE(on_gpu.out == on_cpu.out);
}

TEST(Mel, VerboseSaysStageShapeAndTime) {
    const ProcessResult result = mel({"--verbose"}, audio_stream("1", speech(1, 1), 16000));
    EXPECT_EQ(result.exit_code, 0);
    expect_contains(result.err, "mel: log_mel f32 (80, 102) ");
}

TEST(Mel, RefusesTerminals) {
    if (!has_command("script")) GTEST_SKIP() << "no script command here";
    const ProcessResult out =
        run_shell("script -qec \"mel < '" + sample_path("hat.wav") + "'\" /dev/null");
    EXPECT_EQ(out.exit_code, 2);
    expect_contains(out.out, "stdout is a terminal");
    const ProcessResult in = run_shell("script -qec 'mel > /dev/null' /dev/null");
    EXPECT_EQ(in.exit_code, 2);
    expect_contains(in.out, "stdin is a terminal");
}

TEST(Mel, EndsQuietlyWhenNobodyReadsOn) {
    const ProcessResult result =
        run_shell("audio-decode '" + sample_path("story.mp3") +
                  "' | mel --chunk 0.1 | head -c 10 > /dev/null; echo ${PIPESTATUS[1]}");
    EXPECT_EQ(result.out, "141\n");  // SIGPIPE
    EXPECT_EQ(result.err, "");
}

TEST(Mel, AFullDiskIsAnError) {
    const ProcessResult result = run_shell("mel < '" + sample_path("hat.wav") + "' > /dev/full");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "mel: stdout: cannot write: No space left on device");
}

TEST(Mel, FirstDocumentComesBeforeTheEndOfTheInput) {
    const TemporaryDirectory directory;
    const std::string stream = directory.path() / "stream", go = directory.path() / "go";
    write_text(stream, audio_stream("1", std::vector<float>(960000, 0.0f), 480000) +
                           audio_stream("2", std::vector<float>(480000, 0.0f), 480000));
    const ProcessResult result = run_shell(
        "mkfifo '" + go + "'; { head -c 3841000 '" + stream + "'; read < '" + go +
        "'; tail -c +3841001 '" + stream +
        "'; } | timeout 60 mel | { head -c 960000 | wc -c; echo > '" + go + "'; cat | wc -c; }");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_contains(result.out, "960000\n");
}
