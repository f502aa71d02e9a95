#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "support/process.h"
#include "whisper/output.h"

namespace hark::whisper {
namespace {

Segment segment(double start, double end, const std::string& text) {
    Segment s;
    s.start = start;
    s.end = end;
    s.text = text;
    s.tokens = {1, 2};
    s.avg_logprob = -0.25;
    s.language = "de";
    return s;
}

std::string written(const std::string& format, const std::string& error = "") {
    std::string out;
    auto writer = make_transcript_writer(format, [&](const std::string& text) { out += text; });
    writer->begin({"a.wav", "0", "en"});
    writer->segment(segment(0, 1.5, " One --> two."));
    writer->segment(segment(3661.02, 3662.3, " Tab\there."));
    writer->end(" One --> two. Tab\there.", error);
    return out;
}

TEST(Formats, Text) { EXPECT_EQ(written("text"), "One --> two.\nTab\there.\n"); }

TEST(Formats, Srt) {
    EXPECT_EQ(written("srt"),
              "1\n00:00:00,000 --> 00:00:01,500\nOne -> two.\n\n"
              "2\n01:01:01,020 --> 01:01:02,300\nTab\there.\n\n");
}

TEST(Formats, Vtt) {
    EXPECT_EQ(written("vtt"),
              "WEBVTT\n\n00:00.000 --> 00:01.500\nOne -> two.\n\n"
              "01:01:01.020 --> 01:01:02.300\nTab\there.\n\n");
}

TEST(Formats, Tsv) {
    EXPECT_EQ(written("tsv"),
              "start\tend\ttext\n0\t1500\tOne --> two.\n3661020\t3662300\tTab here.\n");
}

TEST(Formats, Csv) {
    EXPECT_EQ(written("csv"),
              "start,end,text\n0,1500,\"One --> two.\"\n3661020,3662300,\"Tab\there.\"\n");
    std::string out;
    auto writer = make_transcript_writer("csv", [&](const std::string& text) { out += text; });
    writer->segment(segment(0, 1, " \"No,\" he said,\nand left."));
    EXPECT_EQ(out, "0,1000,\"\"\"No,\"\" he said, and left.\"\n");
}

TEST(Formats, Audacity) {
    EXPECT_EQ(written("audacity"),
              "0.000000\t1.500000\tOne --> two.\n3661.020000\t3662.300000\tTab here.\n");
    EXPECT_EQ(transcript_extension("audacity"), ".audacity.txt");
}

TEST(Formats, ALineStaysALine) {
    for (const char* format : {"text", "tsv", "audacity"}) {
        std::string out;
        auto writer = make_transcript_writer(format, [&](const std::string& text) { out += text; });
        writer->segment(segment(0, 1, " One\r\n\ntwo."));
        EXPECT_TRUE(out.ends_with("One   two.\n")) << out;
    }
}

TEST(Formats, Json) {
    const auto json = nlohmann::json::parse(written("json", "broke"));
    EXPECT_EQ(json["source"], "a.wav");
    EXPECT_EQ(json["language"], "en");
    EXPECT_EQ(json["error"], "broke");
    EXPECT_EQ(json["segments"].size(), 2u);
    EXPECT_EQ(json["segments"][1]["id"], 1);
    EXPECT_EQ(json["segments"][1]["end"], 3662.3);
}

TEST(Formats, WordsWhereTheyWereAskedFor) {
    Segment timed = segment(0, 1.5, " One");
    timed.words = {{" One", 0.1, 1.4000000000000001, 0.75}};
    Segment wordless = segment(2, 3, ".");
    wordless.words.emplace();
    for (const char* format : {"json", "jsonl"}) {
        std::string out;
        auto writer = make_transcript_writer(format, [&](const std::string& text) { out += text; });
        writer->begin({"a.wav", "0", "en"});
        for (const Segment& s : {timed, wordless, segment(3, 4, " Two")}) writer->segment(s);
        writer->end("", "");
        std::vector<nlohmann::json> segments;
        std::istringstream in(out);
        for (nlohmann::json object; in >> std::ws && in.good(); segments.push_back(object))
            in >> object;
        if (segments.size() == 1)
            segments = segments[0]["segments"].get<std::vector<nlohmann::json>>();
        ASSERT_EQ(segments.size(), 3u) << format;
        EXPECT_EQ(segments[0]["words"].dump(),
                  R"([{"end":1.4,"probability":0.75,"start":0.1,"word":" One"}])");
        EXPECT_EQ(segments[1]["words"].dump(), "[]");
        EXPECT_FALSE(segments[2].contains("words"));
    }
}

TEST(Formats, JsonLines) {
    std::istringstream lines(written("jsonl", "broke"));
    std::string line;
    std::getline(lines, line);
    const auto first = nlohmann::json::parse(line);
    for (const char* key : {"source", "start", "end", "text", "tokens", "avg_logprob",
                            "no_speech_prob", "compression_ratio", "temperature", "language"})
        EXPECT_TRUE(first.contains(key)) << key;
    std::getline(lines, line);
    std::getline(lines, line);
    EXPECT_EQ(nlohmann::json::parse(line)["error"], "broke");
    EXPECT_EQ(first["language"], "de");
}

TEST(Formats, InvalidUtf8NeverReachesJson) {
    std::string out;
    auto writer = make_transcript_writer("jsonl", [&](const std::string& text) { out += text; });
    writer->begin({"bad\xff.wav", "0", "en"});
    writer->segment(segment(0, 1, "x"));
    EXPECT_EQ(nlohmann::json::parse(out)["source"], "bad\ufffd.wav");
}

TEST(Output, WritesAFileARecordingAndFormatAndKeepsNamesApart) {
    test::TemporaryDirectory directory;
    OutputOptions options{{"text", "srt"}, (directory.path() / "made").string()};
    TranscriptOutput output(options);
    for (const char* source : {"x/a.wav", "y/a.mp3", "z/.."}) {
        output.begin({source, "0", "en"});
        output.segment(segment(0, 1, " Hello."));
        output.end(" Hello.", "");
    }
    output.begin({"s.wav", "1", "en"});
    output.end("", "");
    output.begin({"broken.wav", "0", "en"});
    output.segment(segment(0, 1, " Half."));
    output.end(" Half.", "it broke");
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path() / "made"))
        names.insert(entry.path().filename().string());
    EXPECT_EQ(names, (std::set<std::string>{"a.txt", "a.srt", "a-2.txt", "a-2.srt", "recording.txt",
                                            "recording.srt", "s.1.txt", "s.1.srt"}));
    EXPECT_EQ(test::read_text(directory.path() / "made/a.txt"), "Hello.\n");
}

TEST(Output, TheSummaryHasALineForEachRecordingThatHasEnded) {
    test::TemporaryDirectory directory;
    const std::string summary = (directory.path() / "summary.tsv").string();
    TranscriptOutput output({{"text"}, directory.path().string(), summary});
    std::string expected = "source\tchannel\tfile\tseconds\terror\n";
    EXPECT_EQ(test::read_text(summary), expected);
    output.begin({"x/a.wav", "0", "en", 3.456});
    EXPECT_EQ(test::read_text(summary), expected);
    output.end("", "");
    EXPECT_EQ(test::read_text(summary), expected += "x/a.wav\t0\ta\t3.46\t\n");
    output.begin({"y/a\tb\n.wav", "1", "", 0});
    output.end("", "no\r\naudio");
    EXPECT_EQ(test::read_text(summary), expected += "y/a b .wav\t1\ta b .1\t0.00\tno  audio\n");
    TranscriptOutput on_stdout({{"text"}, "", summary});
    on_stdout.begin({"a.wav", "0", "en", 7200});
    on_stdout.end("", "");
    EXPECT_EQ(test::read_text(summary),
              "source\tchannel\tfile\tseconds\terror\na.wav\t0\t-\t7200.00\t\n");
    EXPECT_THROW(TranscriptOutput({{"text"}, "", (directory.path() / "no/file").string()}), Error);
}

TEST(Output, ASecondRecordingOfSubtitlesOnStdoutIsAnError) {
    TranscriptOutput output({{"srt"}, ""});
    output.begin({"a", "0", "en"});
    output.end("", "");
    EXPECT_THROW(output.begin({"b", "0", "en"}), Error);
}

TEST(Output, ChecksItsOptions) {
    EXPECT_THROW((OutputOptions{{"doc"}, ""}.check(false)), UsageError);
    EXPECT_THROW((OutputOptions{{"srt", "vtt"}, ""}.check(false)), UsageError);
    EXPECT_NO_THROW((OutputOptions{{"srt", "vtt"}, "d"}.check(false)));
    const auto complaint = [](const std::string& format, const SubtitleLayout& layout, bool words) {
        try {
            OutputOptions{{format}, "", "", layout}.check(words);
        } catch (const UsageError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    for (const SubtitleLayout& layout :
         {SubtitleLayout{40}, SubtitleLayout{40, 2}, SubtitleLayout{0, 0, 5},
          SubtitleLayout{20, 0, 5}, SubtitleLayout{0, 0, 0, true}}) {
        EXPECT_EQ(complaint("vtt", layout, true), "");
        EXPECT_NE(complaint("vtt", layout, false).find("needs --word-timestamps"),
                  std::string::npos);
        EXPECT_NE(complaint("tsv", layout, true).find("--format names none"), std::string::npos);
    }
    EXPECT_EQ(complaint("ass", {40}, true), "");
    EXPECT_NE(complaint("ass", {0, 0, 0, true}, true).find("srt and vtt"), std::string::npos);
    EXPECT_NE(complaint("srt", {0, 2}, true).find("needs --max-line-width"), std::string::npos);
    EXPECT_NE(complaint("srt", {40, 2, 5}, true).find("--max-words-per-line: says nothing"),
              std::string::npos);
}

}  // namespace
}  // namespace hark::whisper
