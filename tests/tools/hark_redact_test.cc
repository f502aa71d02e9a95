// hark-redact's contract, on the real binary.
#include <gtest/gtest.h>

#include "core/json/json.h"
#include "support/expect.h"
#include "support/process.h"

using namespace hark::test;
using nlohmann::json;

namespace {

ProcessResult redact(const std::vector<std::string>& arguments, const std::string& input) {
    return run_tool("hark-redact", arguments, input);
}

std::string line(const std::string& text) { return json{{"source", "a"}, {"text", text}}.dump(); }

}  // namespace

TEST(HarkRedact, ReplacesAndSaysWhatItCannotFind) {
    const std::string input = line(" Call 415-555-0123.") + "\n" + line(" Anna lives here.") + "\n";
    const ProcessResult result = redact({}, input);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.out, line(" Call [PHONE].") + "\n" + line(" Anna lives here.") + "\n");
    EXPECT_EQ(result.err, "hark-redact: replaced: phone 1; names stay: see docs/confidential.md\n");
    EXPECT_EQ(redact({"--quiet"}, input).err, "");
    EXPECT_EQ(redact({"--kinds", "email"}, input).out, input);
}

TEST(HarkRedact, ListsAreWordsOfFiles) {
    const TemporaryDirectory directory;
    const std::string names = directory.path() / "names", places = directory.path() / "places";
    write_text(names, "anna\n");
    write_text(places, "Baker Street\n");
    const ProcessResult result =
        redact({"--words", names, "--words", places}, line("Anna, Baker Street 1"));
    EXPECT_EQ(result.out, line("[LISTED], [LISTED] 1") + "\n");
    expect_fails(redact({"--words", names + "x"}, ""), 1, "namesx: cannot open");
}

// What is said is muted, and the rest of the recording is what it was.
TEST(HarkRedact, FfmpegMutesByTheList) {
    if (!has_command("ffmpeg")) GTEST_SKIP() << "no ffmpeg";
    const TemporaryDirectory directory;
    const std::string folder = directory.path(), sea = (samples_dir() / "sea.wav").string();
    write_text(folder + "/words", "mother\n");
    const ProcessResult result = run_shell(
        "cd '" + folder + "' && audio-decode '" + sea +
        "' | mel | whisper-transcribe --model demo --threads 1 --format jsonl --word-timestamps | "
        "hark-redact --words words --mute-list mute > out && ffmpeg -nostdin -v error -i '" +
        sea + "' -filter_script:a mute muted.wav");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json segment = json::parse(read_text(folder + "/out"));
    EXPECT_EQ(segment["text"], " He lived with his [LISTED] in a small house by the sea.");
    double start = 0, end = 0;
    for (const json& word : segment["words"])
        if (word["word"] == " [LISTED]") start = word["start"], end = word["end"];
    ASSERT_GT(end, start);
    const std::string before = read_text(sea), after = read_text(folder + "/muted.wav");
    const auto samples = [](const std::string& wav, double from, double to) {
        const size_t data = wav.find("data") + 8;
        const auto byte = [&](double seconds) {
            return data + 2 * static_cast<size_t>(seconds * 16000);
        };
        return wav.substr(byte(from), byte(to) - byte(from));
    };
    const std::string muted = samples(after, start - 0.15, end + 0.15);
    EXPECT_EQ(muted.find_first_not_of('\0'), std::string::npos);
    EXPECT_NE(samples(before, start, end).find_first_not_of('\0'), std::string::npos);
    EXPECT_EQ(samples(after, 0, start - 0.35), samples(before, 0, start - 0.35));
}

TEST(HarkRedact, AMuteListIsOfOneRecording) {
    const TemporaryDirectory directory;
    const std::string file = directory.path() / "mute";
    const auto timed = [](const char* source) {
        return json{{"source", source}, {"start", 0}, {"end", 1}, {"text", "a@b.org"}}.dump();
    };
    const std::string two = timed("a") + "\n" + timed("b");
    expect_fails(redact({"--mute-list", file}, two), 1,
                 "--mute-list: expected one recording (got a and b); run hark-redact for each");
    EXPECT_FALSE(std::filesystem::exists(file));
    EXPECT_EQ(redact({}, two).exit_code, 0);
}

// Without times it cannot say what to mute. A segment without a finding needs none.
TEST(HarkRedact, AMuteListNeedsTimes) {
    const TemporaryDirectory directory;
    const std::string file = directory.path() / "mute",
                      input = line("Hm.") + "\n" + line(" a@b.org");
    expect_fails(redact({"--mute-list", file}, input), 1,
                 "stdin: line 2: the segment has no start and end; --mute-list needs them");
    EXPECT_FALSE(std::filesystem::exists(file));
    EXPECT_EQ(redact({}, input).exit_code, 0);
    EXPECT_EQ(redact({"--mute-list", file}, line("Hm.")).exit_code, 0);
    EXPECT_EQ(read_text(file), "anull\n");
}

TEST(HarkRedact, WhatIsNoTranscriptIsAnError) {
    for (const char* wrong : {"{", "[]", "{\"a\":1}", "no json", "{\"text\":1}"}) {
        const ProcessResult result = redact({}, line("fine") + "\n" + wrong + "\n");
        expect_fails(result, 1, "hark-redact: stdin: line 2: ");
        EXPECT_EQ(result.out.find(wrong), std::string::npos);
    }
    const std::string expected = "; expected the lines of hark transcribe --format jsonl";
    expect_fails(redact({}, "Hello.\n"), 1, "line 1: not JSON" + expected);
    expect_fails(redact({}, line("fine") + "\n{\"text\":\"M\xfcller\"}\n"), 1,
                 "line 2: not UTF-8" + expected);
    expect_fails(redact({"--kinds", "name"}, ""), 2,
                 "--kinds: expected email, phone, iban, card, date or number (got 'name')");
    expect_fails(redact({"--kinds", "listed"}, ""), 2, "got 'listed'");
}
