// vad's contract, on the real binary.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "speech/detector.h"
#include "speech/sounds.h"
#include "support/audio.h"
#include "support/expect.h"

using namespace hark;
using namespace hark::test;

namespace {

ProcessResult vad(const std::vector<std::string>& arguments, const std::string& input) {
    return run_tool("vad", arguments, input);
}

Samples recording(uint64_t seed, double seconds) {
    return assemble_recording(seed, seconds, samples_dir());
}

// A recording as documents of a number of samples.
std::vector<std::string> documents(const std::string& id, const Samples& samples, size_t step,
                                   const Metadata& more = {}) {
    std::vector<std::string> all;
    for (size_t at = 0; at == 0 || at < samples.size(); at += step) {
        const size_t end = std::min(at + step, samples.size());
        const Samples part(samples.begin() + static_cast<ptrdiff_t>(at),
                           samples.begin() + static_cast<ptrdiff_t>(end));
        all.push_back(
            audio_document(id, static_cast<int64_t>(at), part, end == samples.size(), more));
    }
    return all;
}

std::string stream(const std::vector<std::string>& documents) {
    std::string all;
    for (const std::string& document : documents) all += document;
    return all;
}

// The regions that a recording's documents carry, laid end to end.
std::map<std::string, std::vector<Region>> regions_of(const std::vector<Chunk>& chunks) {
    std::map<std::string, std::vector<Region>> all;
    for (const Chunk& chunk : chunks) {
        std::vector<Region>& regions = all[chunk.recording];
        for (const Region& region : speech_of(chunk.document).value_or(std::vector<Region>{}))
            regions.push_back(region);
    }
    return all;
}

}  // namespace

TEST(Vad, PassesTheStreamOnAndTellsTheRegions) {
    const Samples samples = recording(7, 65);
    const std::vector<Region> expected = detect(samples);
    ASSERT_GT(expected.size(), 3u);
    for (size_t step : {size_t{80000}, size_t{480000}, size_t{12345}, samples.size()}) {
        const std::string input = stream(documents("a", samples, step, {{"note", "kept"}}));
        const ProcessResult result = vad({}, input);
        ASSERT_EQ(result.exit_code, 0) << result.err;
        EXPECT_EQ(result.err, "");
        const std::vector<Chunk> before = read_chunks(input, "audio");
        const std::vector<Chunk> after = read_chunks(result.out, "audio");
        ASSERT_EQ(after.size(), before.size());
        for (size_t i = 0; i < after.size(); ++i) {
            EXPECT_EQ(after[i].start, before[i].start);
            EXPECT_EQ(after[i].last, before[i].last);
            EXPECT_EQ(after[i].document.header.metadata.at("note"), "kept");
            EXPECT_EQ(after[i].document.header.metadata.at("speech_detector"), "spectral");
            const auto regions = speech_of(after[i].document);
            ASSERT_TRUE(regions.has_value());
            for (const Region& region : *regions)
                EXPECT_LE(region.end, after[i].start + after[i].length());
        }
        EXPECT_TRUE(join(after).at("a").values == samples);
        EXPECT_TRUE(regions_of(after).at("a") == expected) << step;
    }
}

TEST(Vad, MelPassesTheRegionsOn) {
    const Samples samples = recording(8, 50);
    const std::vector<Region> expected = detect(samples);
    const std::string marked = vad({}, stream(documents("a", samples, 80000))).out;
    for (const char* chunk : {"30", "5", "0.7", "0"}) {
        const ProcessResult result = run_tool("mel", {"--chunk", chunk}, marked);
        ASSERT_EQ(result.exit_code, 0) << result.err;
        const std::vector<Chunk> chunks = read_chunks(result.out, "mel");
        EXPECT_TRUE(regions_of(chunks).at("a") == expected) << chunk;
        EXPECT_EQ(chunks.back().document.header.metadata.at("speech_detector"), "spectral");
        for (const Chunk& mel : chunks)
            EXPECT_LE(mel.document.header.tensors.size(), 2u);  // log_mel, regions_of
    }
}

TEST(Vad, InterleavedRecordingsDoNotDisturbOneAnother) {
    const Samples a = recording(1, 20), b = recording(2, 33);
    const std::vector<std::string> of_a = documents("a", a, 50000), of_b = documents("b", b, 40000);
    std::string input;
    for (size_t i = 0; i < std::max(of_a.size(), of_b.size()); ++i) {
        if (i < of_a.size()) input += of_a[i];
        if (i < of_b.size()) input += of_b[i];
    }
    const ProcessResult result = vad({}, input + stream(of_a));  // an id may come again
    ASSERT_EQ(result.exit_code, 0) << result.err;
    std::vector<Region> twice = detect(a);
    const auto found = regions_of(read_chunks(result.out, "audio"));
    EXPECT_TRUE(found.at("b") == detect(b));
    const std::vector<Region> once = twice;
    twice.insert(twice.end(), once.begin(), once.end());
    EXPECT_TRUE(found.at("a") == twice);
}

TEST(Vad, FlagsSayWhatIsARegion) {
    const Samples samples = recording(7, 40);
    const std::string input = stream(documents("a", samples, 480000));
    const auto with = [&](const std::vector<std::string>& arguments) {
        return regions_of(read_chunks(vad(arguments, input).out, "audio")).at("a");
    };
    RegionOptions options;
    options.min_silence = 2;
    options.pad = 0.05;
    options.min_speech = 1;
    options.threshold = 0.7;
    EXPECT_TRUE(
        with({"--min-silence", "2", "--pad", "0.05", "--min-speech", "1", "--threshold", "0.7"}) ==
        speech_in_log_mel(log_mel_of(samples), 80, std::ssize(samples), options));
    EXPECT_FALSE(with({"--min-silence", "2"}) == with({}));
}

TEST(Vad, ARecordingWithoutSamplesHasNoSpeech) {
    const ProcessResult result = vad({}, audio_document("a", 0, {}, true, {}, "it broke"));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::vector<Chunk> chunks = read_chunks(result.out, "audio");
    ASSERT_EQ(chunks.size(), 1u);
    EXPECT_EQ(chunks[0].error, "it broke");
    EXPECT_TRUE(speech_of(chunks[0].document)->empty());
}

TEST(Vad, WhatIsNoAudioStreamIsAnError) {
    const std::string audio = stream(documents("a", recording(1, 3), 16000));
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"", "stdin: no data (expected audio documents)"},
        {run_tool("mel", {}, audio).out, "(got mel, expected audio); vad comes before mel"},
        {vad({}, audio).out, "this stream has been through vad already"},
        {"just some words, no stream", "document 1"},
        {audio.substr(0, audio.size() - 10), "the stream ends inside the document"},
        {audio.substr(0, audio.size() / 2), "stream ends"},
    };
    for (const auto& [input, message] : cases) {
        const ProcessResult result = vad({}, input);
        EXPECT_EQ(result.exit_code, 1) << message;
        expect_contains(result.err, "vad: ");
        expect_contains(result.err, message);
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
}

TEST(Vad, AStreamThatBreaksKeepsWhatCame) {
    const Samples samples = recording(3, 20);
    const std::vector<std::string> all = documents("a", samples, 16000);
    const ProcessResult result = vad({}, stream({all.begin(), all.begin() + 10}));
    EXPECT_EQ(result.exit_code, 1);
    const auto got = join(read_chunks(result.out, "audio")).at("a");
    EXPECT_EQ(got.values.size(), 160000u);
    expect_contains(got.error, "ends before the last document");
    EXPECT_TRUE(regions_of(read_chunks(result.out, "audio")).at("a") ==
                detect({samples.begin(), samples.begin() + 160000}));
}

TEST(Vad, WrongCommandLinesExitWith2) {
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{"--no-such-flag"},
                                               {"--thresh", "0.4"},
                                               {"--threshold", "2"},
                                               {"--pad", "-1"},
                                               {"file.wav"}}) {
        const ProcessResult result = vad(arguments, audio_document("a", 0, {}, true));
        EXPECT_EQ(result.exit_code, 2) << result.err;
        EXPECT_EQ(result.out, "");
        expect_contains(result.err, "--help");
    }
}

TEST(Vad, AModelThatCannotBeReadIsAnError) {
    const TemporaryDirectory directory;
    const std::string model = directory.path() / "model.bin";
    for (const char* content : {"", "lmgg", "no weights, only words"}) {
        write_text(model, content);
        const ProcessResult result = vad({"--model", model}, audio_document("a", 0, {}, true));
        EXPECT_EQ(result.exit_code, 1);
        expect_contains(result.err, "model.bin: ");
    }
}

TEST(Vad, SileroFindsJfksSentences) {
    const auto weights = source_dir() / "../shared/data/for-tests-silero-v6.2.0-ggml.bin";
    const auto jfk = source_dir() / "../shared/data/jfk.flac";
    if (!std::filesystem::exists(weights) || !std::filesystem::exists(jfk))
        GTEST_SKIP() << "no ../shared/data/ with Silero's weights and jfk.flac next to the source";
    // whisper.cpp's tests/test-vad.cpp: 4 segments with these, Silero's own, defaults.
    const ProcessResult result =
        run_shell("audio-decode '" + jfk.string() + "' | vad --model '" + weights.string() +
                  "' --min-speech 0.25 --min-silence 0.1 --pad 0.03");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::vector<Chunk> chunks = read_chunks(result.out, "audio");
    EXPECT_EQ(regions_of(chunks).begin()->second.size(), 4u);
    EXPECT_EQ(chunks[0].document.header.metadata.at("speech_detector"), "silero");
}

TEST(Vad, HelpAndVersionGoToStdout) {
    const ProcessResult help = vad({"--help"}, ""), version = vad({"--version"}, "");
    EXPECT_EQ(help.exit_code, 0);
    const ProcessResult all = vad({"--help-all"}, "");
    expect_contains(help.out, "Examples:");
    EXPECT_LE(std::count(help.out.begin(), help.out.end(), '\n'), 45);
    EXPECT_EQ(version.exit_code, 0);
    EXPECT_EQ(help.err + version.err, "");
    expect_contains(version.out, "vad (hark) ");
    for (const char* flag : {"--model", "--threshold", "--min-speech", "--min-silence", "--pad"})
        expect_contains(all.out, flag);
}
