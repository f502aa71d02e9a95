// whisper-transcribe_mel and the whole pipeline: the real binaries, as a shell runs them.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/json/json.h"
#include "support/process.h"
#include "tools/transcribe.h"

namespace hark::test {
namespace {

using nlohmann::json;

std::string samples(const std::string& name) { return (samples_dir() / name).string(); }

// The mel stream of recordings of samples/.
std::string mel_of_samples(const std::string& names) {
    const ProcessResult made =
        run_shell("cd " + samples_dir().string() + " && audio-decode " + names + " | mel");
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return made.out;
}

const std::string& sea_mel() {
    static const std::string kMel = mel_of_samples("sea.wav");
    return kMel;
}

TEST(Pipeline, AFilesBytesOnStdinAreEnough) {
    const DetectedLanguages by_themselves;
    const ProcessResult result =
        run_shell("ffmpeg -v error -nostdin -i " + samples("story.mp3") +
                  " -f wav - | mel | whisper-transcribe --model demo --threads 1 | tr '\\n' ' ' |"
                  " gpt-generate --model demo --threads 1 --max-tokens 10 --temperature 0");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_FALSE(result.out.empty());
    EXPECT_EQ(result.err, "");
}

TEST(WhisperTranscribe, JsonLinesHoldWhatTheyPromise) {
    const DetectedLanguages by_themselves;
    const ProcessResult result = transcribe_mel({"--format", "jsonl"}, sea_mel());
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json segment = json::parse(result.out);
    EXPECT_EQ(segment["source"], "sea.wav");
    EXPECT_EQ(segment["text"], " He lived with his mother in a small house by the sea.");
    EXPECT_EQ(segment["language"], "en");
    EXPECT_EQ(segment["start"], 0.0);
    for (const char* key :
         {"end", "tokens", "avg_logprob", "no_speech_prob", "compression_ratio", "temperature"})
        EXPECT_TRUE(segment.contains(key)) << key;
}

TEST(WhisperTranscribe, WordsHaveTimes) {
    const json without = json::parse(transcribe_mel({"--format", "jsonl"}, sea_mel()).out);
    EXPECT_FALSE(without.contains("words"));
    const ProcessResult result =
        transcribe_mel({"--format", "jsonl", "--word-timestamps"}, sea_mel());
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json segment = json::parse(result.out);
    std::string text;
    double last = 0;
    for (const json& word : segment["words"]) {
        text += word["word"].get<std::string>();
        EXPECT_GE(word["start"].get<double>(), last);
        EXPECT_GT(word["end"].get<double>(), word["start"].get<double>());
        EXPECT_GT(word["probability"].get<double>(), 0.0);
        last = word["end"];
    }
    EXPECT_EQ(text, " He lived with his mother in a small house by the sea.");
    EXPECT_EQ(segment["words"].size(), 12u);
    EXPECT_EQ(segment["end"], last);
    // The other formats are as they are without: a flag that adds nothing to them.
    EXPECT_EQ(transcribe_mel({"--word-timestamps"}, sea_mel()).out,
              transcribe_mel({}, sea_mel()).out);
}

TEST(WhisperTranscribe, SeveralRecordingsInText) {
    const std::string text = "He lived with his mother in a small house by the sea.\n";
    const ProcessResult result = transcribe_mel({}, sea_mel() + sea_mel());
    EXPECT_EQ(result.out, text + "\n" + text);
}

TEST(WhisperTranscribe, SubtitlesOfSeveralNeedADirectory) {
    ProcessResult result = transcribe_mel({"--format", "srt"}, sea_mel() + sea_mel());
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("--output-dir"), std::string::npos);
    EXPECT_NE(result.out.find("house by the sea"), std::string::npos);  // the first one is whole
    TemporaryDirectory directory;
    result =
        transcribe_mel({"--format", "srt,vtt,jsonl", "--output-dir", directory.path().string()},
                       sea_mel() + sea_mel());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "");
    for (const char* name : {"sea.srt", "sea.vtt", "sea.jsonl", "sea-2.srt"})
        EXPECT_NE(read_text(directory.path() / name).find("house by the sea"), std::string::npos)
            << name;
}

TEST(WhisperTranscribe, SameInputSameBytes) {
    const std::string mel = mel_of_samples("roi.wav telephone.wav");
    const std::vector<std::string> arguments = {
        "--format", "jsonl", "--temperature", "0.7", "--fallback-temperatures", "none",
        "--seed",   "3"};
    const ProcessResult a = transcribe_mel(arguments, mel), b = transcribe_mel(arguments, mel);
    EXPECT_EQ(a.out, b.out);
    EXPECT_FALSE(a.out.empty());
    const ProcessResult other = transcribe_mel({"--format", "jsonl", "--temperature", "0.7",
                                                "--fallback-temperatures", "none", "--seed", "4"},
                                               mel);
    EXPECT_NE(a.out, other.out);
}

TEST(WhisperTranscribe, SilenceAndQuietNoiseGiveNoTextAndExit0) {
    const ProcessResult result = transcribe_mel({}, mel_of_samples("silence.wav noise.wav"));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out.find_first_not_of('\n'), std::string::npos) << result.out;
}

TEST(WhisperTranscribe, OneBrokenRecordingOfThree) {
    TemporaryDirectory directory;
    write_text(directory.path() / "bad.wav", "this is no audio at all");
    const ProcessResult result =
        run_shell("set -o pipefail; audio-decode " + samples("sea.wav") + " " +
                  (directory.path() / "bad.wav").string() + " " + samples("key.wav") +
                  " | mel | whisper-transcribe --model demo --threads 1 --format jsonl");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.out.find("house by the sea"), std::string::npos);
    EXPECT_NE(result.out.find("key to the door"), std::string::npos);
    EXPECT_NE(result.err.find("bad.wav"), std::string::npos);
    EXPECT_NE(result.out.find("\"error\""), std::string::npos);
    // whisper-transcribe_mel alone fails too, whatever the stages before said.
    const ProcessResult last =
        run_shell("audio-decode " + (directory.path() / "bad.wav").string() +
                  " 2>/dev/null | mel | whisper-transcribe --model demo --threads 1");
    EXPECT_EQ(last.exit_code, 1);
    EXPECT_EQ(last.out, "");
}

TEST(WhisperTranscribe, ReaderErrorsAreExit1) {
    const std::string& mel = sea_mel();
    EXPECT_EQ(transcribe_mel({}, mel.substr(0, mel.size() / 2)).exit_code, 1);  // truncated
    // A recording without its last document.
    const ProcessResult chunked = run_shell("mel --chunk 1 < " + samples("sea.wav"));
    std::string first = chunked.out;
    const size_t second = first.find("\"start\":\"100\"");
    ASSERT_NE(second, std::string::npos);
    first.resize(first.rfind("{\"__metadata__\"", second) - 8);
    const ProcessResult cut = transcribe_mel({}, first);
    EXPECT_EQ(cut.exit_code, 1);
    EXPECT_NE(cut.err.find("last document"), std::string::npos) << cut.err;
    // Audio instead of mel.
    const ProcessResult audio = run_shell("audio-decode " + samples("sea.wav") +
                                          " | whisper-transcribe --model demo --threads 1");
    EXPECT_EQ(audio.exit_code, 1);
    EXPECT_NE(audio.err.find("pipe it through mel first"), std::string::npos) << audio.err;
    // Another number of mels.
    const ProcessResult mels = run_shell("mel --mels 128 < " + samples("sea.wav") +
                                         " | whisper-transcribe --model demo --threads 1");
    EXPECT_EQ(mels.exit_code, 1);
    EXPECT_NE(mels.err.find("--mels 80"), std::string::npos) << mels.err;
}

TEST(WhisperTranscribe, WhatWasWrittenBeforeAnErrorStays) {
    const ProcessResult result = transcribe_mel({}, sea_mel() + "garbage garbage garbage");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "He lived with his mother in a small house by the sea.\n");
}

TEST(WhisperTranscribe, TerminalsAndClosedPipes) {
    // script(1) gives the tool a terminal on stdin.
    const ProcessResult terminal =
        run_shell("script -qec 'whisper-transcribe --model demo' /dev/null < /dev/null; true");
    EXPECT_NE(terminal.out.find("stdin is a terminal"), std::string::npos) << terminal.out;
    EXPECT_NE(terminal.out.find("audio-decode talk.mp3 | mel | whisper-transcribe"),
              std::string::npos)
        << terminal.out;
    const ProcessResult closed = run_shell(
        "{ whisper-transcribe --model demo --threads 1 --format jsonl; echo $? >&2; } | true",
        sea_mel() + sea_mel());
    EXPECT_EQ(closed.err, "141\n");  // 128 + SIGPIPE, and nothing said
    const ProcessResult full =
        run_shell("whisper-transcribe --model demo --threads 1 > /dev/full", sea_mel());
    EXPECT_EQ(full.exit_code, 1);
    EXPECT_NE(full.err.find("No space left"), std::string::npos) << full.err;
}

TEST(WhisperTranscribe, HelpAndVersionGoToStdout) {
    for (const char* flag : {"--help", "-h", "--version"}) {
        const ProcessResult result = run_tool("whisper-transcribe", {flag});
        EXPECT_EQ(result.exit_code, 0);
        EXPECT_NE(result.out, "");
        EXPECT_EQ(result.err, "");
    }
}

TEST(WhisperTranscribe, DetectsLanguagesWithoutTranscribing) {
    const DetectedLanguages by_themselves;
    const std::string mel = mel_of_samples("vater.wav sea.wav maison.wav nacht.wav");
    const ProcessResult text = transcribe_mel({"--task", "detect"}, mel);
    EXPECT_EQ(text.exit_code, 0) << text.err;
    std::istringstream lines(text.out);
    const ProcessResult jsonl = transcribe_mel({"--task", "detect", "--format", "jsonl"}, mel);
    std::istringstream objects(jsonl.out);
    const std::pair<std::string, std::string> kSpoken[] = {
        {"vater.wav", "de"}, {"sea.wav", "en"}, {"maison.wav", "fr"}, {"nacht.wav", "de"}};
    for (const auto& [source, language] : kSpoken) {
        std::string code, probability, name, line;
        lines >> code >> probability >> name;
        EXPECT_EQ(code, language);
        EXPECT_EQ(name, source);
        std::getline(objects, line);
        const json object = json::parse(line);
        EXPECT_EQ(object["source"], source);
        EXPECT_EQ(object["language"], language);
        EXPECT_GT(object["probability"].get<double>(), 0.5);
        EXPECT_NEAR(object["probability"].get<double>(), std::stod(probability), 1e-4);
        EXPECT_FALSE(object.contains("text"));
    }
    // One without speech is named, and the next one is done.
    const ProcessResult silent =
        transcribe_mel({"--task", "detect", "--vad"}, mel_of_samples("silence.wav sea.wav"));
    EXPECT_EQ(silent.exit_code, 1);
    EXPECT_NE(silent.err.find("silence.wav: no speech to detect a language in"), std::string::npos)
        << silent.err;
    EXPECT_EQ(silent.out.substr(0, 3), "en\t");
}

TEST(WhisperTranscribe, OptionsThatOpenaiWhisperHas) {
    const std::string text = "He lived with his mother in a small house by the sea.\n";
    for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
             {"--word-timestamps", "--prepend-punctuations=", "--append-punctuations="},
             {"--compression-ratio-threshold", "none", "--logprob-threshold", "none",
              "--no-speech-threshold", "none"},
             {"--temperature", "0", "--fallback-temperatures", "none"},
             {"--max-initial-timestamp", "none", "--suppress-tokens", ""},
             {"--clip", "0,3,3,2,2.9"}}) {
        const ProcessResult result = transcribe_mel(arguments, sea_mel());
        EXPECT_EQ(result.exit_code, 0) << result.err;
        EXPECT_EQ(result.out.rfind("He lived with", 0), 0u) << arguments[0] << result.out;
    }
    EXPECT_EQ(transcribe_mel({"--sample-len", "4"}, sea_mel()).out, "He lived with\n");
}

TEST(WhisperTranscribe, HelpFitsOneScreen) {
    const ProcessResult help = run_tool("whisper-transcribe", {"--help"});
    EXPECT_LE(std::count(help.out.begin(), help.out.end(), '\n'), 45) << help.out;
    for (const char* section : {"Examples:", "Input:", "Decoding:", "Output:"})
        EXPECT_NE(help.out.find(section), std::string::npos) << section;
}

TEST(WhisperTranscribe, LanguagesGoByTheirNamesToo) {
    const std::string wanted =
        transcribe_mel({"--format", "jsonl", "--language", "de"}, sea_mel()).out;
    EXPECT_NE(wanted.find("\"language\":\"de\""), std::string::npos) << wanted;
    for (const char* name : {"German", "german", "DE"})
        EXPECT_EQ(transcribe_mel({"--format", "jsonl", "--language", name}, sea_mel()).out, wanted)
            << name;
    const ProcessResult unknown = transcribe_mel({"--language", "Klingon"}, sea_mel());
    EXPECT_EQ(unknown.exit_code, 1);
    EXPECT_NE(unknown.err.find("'Klingon'; it knows af am ar"), std::string::npos) << unknown.err;
    const ProcessResult misspelt = transcribe_mel({"--language", "Germn"}, sea_mel());
    EXPECT_EQ(misspelt.exit_code, 1);
    EXPECT_NE(misspelt.err.find("'Germn'; did you mean 'German'?"), std::string::npos)
        << misspelt.err;
}

TEST(WhisperTranscribe, AClipBehindTheEndIsNamed) {
    const ProcessResult past_end = transcribe_mel({"--clip", "100,200"}, sea_mel());
    EXPECT_EQ(past_end.exit_code, 0);
    EXPECT_EQ(past_end.out, "");
    EXPECT_EQ(past_end.err.rfind("whisper-transcribe: sea.wav: --clip begins at 100 s, but the "
                                 "recording is only ",
                                 0),
              0u)
        << past_end.err;
    EXPECT_EQ(transcribe_mel({"--clip", "100", "--quiet"}, sea_mel()).err, "");
    const ProcessResult second = transcribe_mel({"--clip", "0,50,60,70"}, sea_mel());
    EXPECT_EQ(second.out, transcribe_mel({}, sea_mel()).out);
    EXPECT_NE(second.err.find("--clip begins at 60 s"), std::string::npos) << second.err;
    EXPECT_EQ(std::count(second.err.begin(), second.err.end(), '\n'), 1) << second.err;
    EXPECT_EQ(transcribe_mel({"--clip", "0.5,100"}, sea_mel()).err, "");
}

TEST(WhisperTranscribe, AClipThatEndsBeforeItBeginsIsNamed) {
    const ProcessResult backwards = transcribe_mel({"--clip", "2,1"}, sea_mel());
    EXPECT_EQ(backwards.exit_code, 0);
    EXPECT_EQ(backwards.out, "");
    EXPECT_EQ(backwards.err,
              "whisper-transcribe: sea.wav: --clip ends at 1 s, but begins at 2 s: nothing is "
              "transcribed there\n");
    EXPECT_EQ(transcribe_mel({"--clip", "2,1", "--quiet"}, sea_mel()).err, "");
}

TEST(WhisperTranscribe, ClipsBeforeAMissingPartAreWhole) {
    const std::string half =
        run_shell("head -c 80270 '" + samples_dir().string() + "/story.mp3' | audio-decode - | mel")
            .out;
    EXPECT_NE(half.find(R"("missing":"end")"), std::string::npos);
    const ProcessResult before = transcribe_mel({"--clip", "0,10"}, half);
    EXPECT_EQ(before.exit_code, 0) << before.err;
    EXPECT_EQ(before.err, "");
    EXPECT_EQ(before.out.rfind("He was a very old man", 0), 0u) << before.out;
    for (const char* clips : {"0,14", "0,3,5"}) {
        const ProcessResult over = transcribe_mel({"--clip", clips}, half);
        EXPECT_EQ(over.exit_code, 1) << clips;
        EXPECT_NE(over.err.find("ends at 13.3 of 26.7 s"), std::string::npos) << over.err;
    }
}

// Without a stream, so that a script knows before its first recording.
TEST(WhisperTranscribe, ChecksItsOptionsAndSaysWhatItTakes) {
    const DetectedLanguages by_themselves;  // a language that is given is refused with detect
    const auto check = [](std::vector<std::string> arguments) {
        arguments.push_back("--check");
        return transcribe_mel(arguments, "garbage");
    };
    EXPECT_EQ(check({}).out, "mels\t80\ntask\ttranscribe\n");
    EXPECT_EQ(check({"--live"}).out, "mels\t80\ntask\ttranscribe\n");
    EXPECT_EQ(check({"--task", "detect"}).out, "mels\t80\ntask\tdetect\n");
    EXPECT_EQ(check({}).err, "");
    expect_fails_without_output(check({"--language", "klingon"}), 1, "klingon");
    expect_fails_without_output(check({"--live", "--language", "klingon"}), 1, "klingon");
    expect_fails_without_output(check({"--suppress-tokens", "99999"}), 1, "99999");
}

TEST(WhisperTranscribe, VerboseNamesStagesAndQuietLeavesErrors) {
    const DetectedLanguages by_themselves;
    const std::string stages = transcribe_mel({"--verbose"}, sea_mel()).err;
    for (const char* stage : {"model demo ", "sea.wav: encoder (2 calls) ", "sea.wav: decoder ("})
        EXPECT_NE(stages.find(stage), std::string::npos) << stage << "in " << stages;
    EXPECT_LT(std::count(stages.begin(), stages.end(), '\n'), 8) << stages;
    const std::string steps = transcribe_mel({"--trace"}, sea_mel()).err;
    EXPECT_NE(steps.find("encoder f32 (1, 3000, 80)"), std::string::npos) << steps;
    EXPECT_GT(std::count(steps.begin(), steps.end(), '\n'), 15) << steps;
    EXPECT_EQ(transcribe_mel({}, sea_mel()).err, "");
    EXPECT_NE(transcribe_mel({"--quiet"}, "garbage..").err, "");
}

}  // namespace
}  // namespace hark::test
