#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json/json.h"
#include "whisper/output/formats.h"

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

TEST(Formats, ABlankLineStandsBetweenRecordingsWithTextAlone) {
    std::string out;
    auto writer = make_transcript_writer("text", [&](const std::string& text) { out += text; });
    for (const char* text : {"", " One.", "", "", " Two.", " \x01\n", " Three."}) {
        writer->begin({"a.wav", "0", "en"});
        if (*text) writer->segment(segment(0, 1, text));
        writer->end(text, "");
    }
    EXPECT_EQ(out, "One.\n\nTwo.\n\nThree.\n");
}

TEST(Formats, ASegmentOfControlCharactersIsNoLine) {
    for (const char* format : {"text", "tsv", "csv", "audacity", "srt"}) {
        std::string out;
        auto writer = make_transcript_writer(format, [&](const std::string& text) { out += text; });
        writer->segment(segment(0, 1, " \x01\n"));
        EXPECT_EQ(out, "") << format;
    }
}

TEST(Formats, TextWithTimes) {
    std::string out;
    auto writer = make_transcript_writer("text", [&](const std::string& text) { out += text; }, {},
                                         {.times = true});
    writer->begin({"a.wav", "0", "en"});
    writer->segment(segment(0, 2.56, " One."));
    writer->segment(segment(3661.02, 3662.3, " Two."));
    EXPECT_EQ(out, "[00:00.000 --> 00:02.560] One.\n[01:01:01.020 --> 01:01:02.300] Two.\n");
}

TEST(Formats, TextMarksWordsOfLowProbability) {
    const std::vector<Word> words = {
        {" One", 0, 1, 0.9}, {" two\n,", 1, 2, 0.5}, {" three.", 2, 3, 0.39}, {" ", 3, 3, 0.1}};
    EXPECT_EQ(text_line(0, 3, "", words, {.confidence = true}),
              "One \033[4;33mtwo ,\033[0m \033[1;4;31mthree.\033[0m");
    EXPECT_EQ(text_line(0, 3, " One two", words, {}), "One two");
    EXPECT_EQ(text_line(0, 3, " One two", {}, {.confidence = true}), "One two");
}

TEST(Formats, Lrc) {
    EXPECT_EQ(written("lrc"), "[00:00.00]One --> two.\n[61:01.02]Tab\there.\n");
    std::string out;
    auto writer = make_transcript_writer("lrc", [&](const std::string& text) { out += text; });
    Segment timed = segment(0, 1.5, " One two");
    timed.words = {{" One", 0.1, 0.5, 0.75}, {" two", 0.615, 1.4, 0.75}};
    writer->segment(timed);
    timed.words = {{"我", 60, 60.5, 0.75}, {"的", 60.5, 61, 0.75}};
    writer->segment(timed);
    EXPECT_EQ(out,
              "[00:00.10]<00:00.10>One <00:00.62>two <00:01.40>\n"
              "[01:00.00]<01:00.00>我<01:00.50>的 <01:01.00>\n");
}

TEST(Formats, MarkdownHasAHeadingPerRecordingAndParagraphsAtPauses) {
    std::string out;
    auto writer = make_transcript_writer("md", [&](const std::string& text) { out += text; });
    writer->begin({"my_talk.mp3", "0", "en"});
    writer->segment(segment(0, 1.5, " One *star*"));
    writer->segment(segment(2, 3, " and <b>."));
    writer->segment(segment(5.5, 6, " # Not a heading."));
    writer->end("", "");
    writer->begin({"silence.wav", "1", ""});
    writer->end("", "");
    writer->begin({"long.wav", "0", "en"});
    const std::string sentence = std::string(598, 'x') + ".";
    writer->segment(segment(3723.9, 3724, " " + sentence));
    writer->segment(segment(3724, 3725, " End."));
    writer->end("", "");
    EXPECT_EQ(out,
              "# my\\_talk.mp3\n\n**0:00** One \\*star\\* and \\<b\\>.\n\n"
              "**0:05** \\# Not a heading.\n\n# silence.wav, channel 1\n\n# long.wav\n\n"
              "**1:02:03** " +
                  sentence + "\n\n**1:02:04** End.\n");
}

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

// tests/page/test_correcting.py expects the same of the page of --format html.
TEST(Formats, OddTexts) {
    const std::pair<const char*, const char*> expected[] = {
        {"text", "One --> two & <b>.\na b\nTab\there.\n"},
        {"srt",
         "1\n00:00:00,000 --> 00:00:01,500\nOne -> two & <b>.\n\n"
         "2\n00:00:03,000 --> 00:00:03,000\na b\n\n"
         "3\n01:01:01,020 --> 01:01:02,300\nTab\there.\n\n"},
        {"vtt",
         "WEBVTT\n\n00:00.000 --> 00:01.500\nOne -> two &amp; &lt;b>.\n\n"
         "00:03.000 --> 00:03.000\na b\n\n01:01:01.020 --> 01:01:02.300\nTab\there.\n\n"}};
    for (const auto& [format, text] : expected) {
        std::string out;
        auto writer = make_transcript_writer(format, [&](const std::string& part) { out += part; });
        writer->begin({"a.wav", "0", "en"});
        writer->segment(segment(0, 1.5, " One --> two & <b>."));
        writer->segment(segment(2, 2.5, " \x01\n"));
        writer->segment(segment(3, 3,
                                "\u0085\u3000a\x1f"
                                "b\x7f "));
        writer->segment(segment(3661.02, 3662.3, " Tab\there."));
        writer->end("", "");
        EXPECT_EQ(out, text) << format;
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

}  // namespace
}  // namespace hark::whisper
