// whisper-transcribe --live: the real binaries in a pipe, fed faster than anybody speaks.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "core/json/json.h"
#include "eval/edit_distance.h"
#include "eval/normalizer.h"
#include "support/audio.h"
#include "support/process.h"
#include "support/recordings.h"

namespace hark::test {
namespace {

using nlohmann::json;

constexpr const char* kLive = "mel --raw s16le --chunk 1 | whisper-transcribe --model demo --live ";

struct Clip {
    const char *file, *text;
};
const std::vector<Clip> kClips = {
    {"harbour.wav", "The old captain walked slowly down to the harbour."},
    {"minister.wav", "The minister said that the new law would come next week."},
    {"hat.wav", "He took off his hat and sat down by the fire."},
    {"lights.wav", "Turn off the lights in the kitchen."},
    {"prices.wav", "The prices of oil and bread have gone up again."},
    {"key.wav", "Where did you leave the key to the door?"},
    {"train.wav", "The train to the city leaves at seven in the morning."},
    {"answer.wav", "Nobody answered, and the door was shut."},
};

// 16-bit samples of the clips, with a second of silence after each.
std::string sound(size_t clips) {
    std::string bytes;
    for (size_t i = 0; i < clips; ++i) {
        for (const int16_t sample : read_plain_wav(samples_dir() / kClips[i].file))
            bytes += little_endian(static_cast<uint16_t>(sample), 2);
        bytes += std::string(32000, '\0');
    }
    return bytes;
}

std::string said(size_t clips) {
    std::string text;
    for (size_t i = 0; i < clips; ++i) text += std::string(" ") + kClips[i].text;
    return text;
}

std::vector<json> live_lines_of(const std::string& out) {
    std::vector<json> lines;
    std::istringstream in(out);
    for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
    return lines;
}

// Word errors by the words of the reference, as Whisper's normaliser leaves them.
double error_rate(const std::string& reference, const std::string& text) {
    std::map<std::string, uint32_t> numbers;
    const auto numbered = [&](const std::string& words) {
        std::vector<uint32_t> ids;
        std::istringstream in(normalize_english(words));
        for (std::string word; in >> word;)
            ids.push_back(
                numbers.try_emplace(word, static_cast<uint32_t>(numbers.size())).first->second);
        return ids;
    };
    const std::vector<uint32_t> expected = numbered(reference);
    return static_cast<double>(edit_distance(expected, numbered(text))) /
           static_cast<double>(expected.size());
}

// How much has come when it is read depends on the machine, and so may a word; not the form.
TEST(Live, EventsAreWellFormedAndTheFinalsAreTheText) {
    const ProcessResult result = run_shell(kLive, sound(kClips.size()));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    std::string finals, agreed, last;
    double previous = 0;
    for (const json& line : live_lines_of(result.out)) {
        EXPECT_EQ(line.at("source"), "stdin");
        const std::string text = line.at("text");
        const double start = line.at("start"), end = line.at("end");
        EXPECT_LE(start, end);
        last = line.at("event");
        if (last == "partial") {
            // What has been agreed stays: at the beginning of this one.
            const std::string now = line.at("agreed");
            EXPECT_TRUE(text.starts_with(now)) << line;
            EXPECT_TRUE(now.starts_with(agreed)) << line << " after '" << agreed << "'";
            agreed = now;
            continue;
        }
        ASSERT_EQ(last, "final") << line;
        EXPECT_EQ(line.at("language"), "en");
        finals += text;
        const size_t common = std::min(agreed.size(), text.size());
        EXPECT_EQ(text.substr(0, common), agreed.substr(0, common));
        agreed.erase(0, common);
        std::string words;
        EXPECT_EQ(line.at("words").front().at("start"), start);
        EXPECT_EQ(line.at("words").back().at("end"), end);
        for (const json& word : line.at("words")) {
            words += word.at("word");
            EXPECT_GE(word.at("start"), previous);
            EXPECT_GE(word.at("end"), word.at("start"));
            EXPECT_GT(word.at("probability"), 0);
            previous = word.at("end");
        }
        EXPECT_EQ(words, text);
    }
    EXPECT_EQ(last, "final");
    EXPECT_EQ(agreed, "");
    EXPECT_LE(previous, static_cast<double>(sound(kClips.size()).size()) / 32000);
    EXPECT_LE(error_rate(said(kClips.size()), finals), 0.1) << finals;
}

TEST(Live, TextHasALineAFinalSegment) {
    const ProcessResult result = run_shell(kLive + std::string("--format text"), sound(4));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_LE(error_rate(said(4), result.out), 0.1) << result.out;
    EXPECT_GE(std::count(result.out.begin(), result.out.end(), '\n'), 4);
}

// The first lines come while the sound continues, and Ctrl-C makes the rest final.
TEST(Live, ASignalEndsTheSound) {
    const TemporaryDirectory directory;
    for (const char* signal : {"INT", "TERM"}) {
        const ProcessResult result = run_shell(
            "cd '" + directory.path().string() +
                "' && cat > sound && rm -f out fifo && mkfifo fifo && mel --raw s16le --chunk 1 < "
                "sound | head -c 97000 > part && "  // three documents, the last one whole
                // a shell without job control lets what is started with & ignore SIGINT
                "{ env --default-signal=INT whisper-transcribe --model demo --live < fifo > out & "
                "} && "
                "exec 3> fifo && "
                "cat part >&3 && for i in $(seq 600); do grep -q partial out && break; "
                "sleep 0.1; done; kill -" +
                signal + " $!; wait $!; echo status $?; cat out",
            sound(1));
        EXPECT_TRUE(result.out.starts_with("status 0\n")) << result.out << result.err;
        const std::vector<json> lines = live_lines_of(result.out.substr(9));
        ASSERT_GE(lines.size(), 2u) << result.out;
        EXPECT_EQ(lines.back().at("event"), "final");
    }
}

TEST(Live, AStreamThatBreaksLosesNothing) {
    const ProcessResult result = run_shell(
        "mel --raw s16le --chunk 1 | head -c 130000 | whisper-transcribe --model demo --live",
        sound(2));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("the stream ends inside"), std::string::npos) << result.err;
    const std::vector<json> lines = live_lines_of(result.out);
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(lines.back().at("event"), "final");
}

TEST(Live, AChunkThatIsRefusedLosesNothing) {
    const ProcessResult result =
        run_shell("cat > /dev/null; audio-decode --split-channels --chunk 1 '" +
                      (samples_dir() / "two_speakers.flac").string() +
                      "' | mel --chunk 1 | whisper-transcribe --model demo --live",
                  "");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("has ended"), std::string::npos) << result.err;
    const std::vector<json> lines = live_lines_of(result.out);
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(lines.back().at("event"), "final") << result.out;
}

TEST(Live, WhatNeedsTheWholeRecordingIsRefusedByName) {
    for (const char* flag : {"--format srt",
                             "--output-dir d",
                             "--summary s",
                             "--clip 1",
                             "--batch-size 2",
                             "--windows independent",
                             "--task detect",
                             "--language-windows 2",
                             "--vad",
                             "--no-timestamps",
                             "--prefix a",
                             "--draft-model demo",
                             "--word-timestamps",
                             "--format jsonl,text",
                             "--max-line-width 42",
                             "--max-line-count 2",
                             "--max-words-per-line 3",
                             "--highlight-words",
                             "--draft-tokens 3",
                             "--language-threshold 0.3",
                             "--hallucination-silence-threshold 2"}) {
        const ProcessResult result =
            run_shell(std::string("whisper-transcribe --model demo --live ") + flag, "x");
        EXPECT_EQ(result.exit_code, 2) << flag << result.err;
        const std::string given = flag, name = given.substr(0, given.find(' '));
        EXPECT_NE(result.err.find("--live: "), std::string::npos) << result.err;
        EXPECT_NE(result.err.find(name), std::string::npos) << result.err;
    }
}

TEST(Live, WordsHaveTimesSoTheirFlagsNeedNoOther) {
    const ProcessResult result =
        run_shell(kLive + std::string("--append-punctuations ."), sound(1));
    EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(Live, LongPiecesOfSoundAreWarnedOfOnce) {
    const ProcessResult result = run_shell(
        "cat > /dev/null; head -c 2200000 /dev/zero | mel --raw s16le | "
        "whisper-transcribe --model demo --live --format text",
        "");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const size_t at = result.err.find("chunks of 30 s");
    EXPECT_NE(at, std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("chunks of", at + 1), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("mel --chunk 1"), std::string::npos) << result.err;
}

TEST(Live, RegionsOfSpeechComeTooLate) {
    const ProcessResult result =
        run_shell("cat > /dev/null; audio-decode '" + (samples_dir() / "hat.wav").string() +
                      "' | vad | mel | whisper-transcribe --model demo --live",
                  "");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("vad"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace hark::test
