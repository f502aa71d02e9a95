// How words are laid out: openai-whisper's own writers, and tables on scripts that it does not
// mind.
#include "whisper/output/subtitles.h"

#include <gtest/gtest.h>

#include <random>

#include "core/json/json.h"
#include "support/fnv.h"
#include "support/golden.h"
#include "support/process.h"
#include "text/unicode.h"
#include "whisper/output/formats.h"

namespace hark::whisper {
namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

std::vector<Segment> segments_of(const json& transcript) {
    std::vector<Segment> segments;
    for (const json& entry : transcript) {
        Segment subtitles_segment;
        subtitles_segment.start = entry[0];
        subtitles_segment.end = entry[1];
        subtitles_segment.words.emplace();
        for (const json& word : entry[2]) {
            subtitles_segment.words->push_back({word[0], word[1], word[2], 0.5});
            subtitles_segment.text += subtitles_segment.words->back().text;
        }
        segments.push_back(std::move(subtitles_segment));
    }
    return segments;
}

SubtitleLayout layout_of(const json& options) {
    return {options[0], options[1], options[2], options[3]};
}

std::string subtitles_written(const std::string& format, const std::vector<Segment>& segments,
                              const SubtitleLayout& layout) {
    std::string out;
    auto writer = make_transcript_writer(
        format, [&](const std::string& text) { out += text; }, layout);
    writer->begin({"a.wav", "0", "en"});
    for (const Segment& subtitles_segment : segments) writer->segment(subtitles_segment);
    writer->end("", "");
    return out;
}

TEST(Subtitles, AreOpenaiWhispersOverItsOptions) {
    const json golden = test::golden("subtitles.json");
    const json& transcripts = golden["transcripts"];
    for (const json& entry : golden["whole"]) {
        const auto segments = segments_of(transcripts[entry[0].get<size_t>()]);
        EXPECT_EQ(subtitles_written("srt", segments, layout_of(entry[1])),
                  entry[2].get<std::string>())
            << entry[1];
        EXPECT_EQ(subtitles_written("vtt", segments, layout_of(entry[1])),
                  entry[3].get<std::string>())
            << entry[1];
    }
    int compared = 0;
    for (const json& entry : golden["hashes"]) {
        const auto segments = segments_of(transcripts[entry[0].get<size_t>()]);
        const std::string srt = subtitles_written("srt", segments, layout_of(entry[1]));
        const std::string vtt = subtitles_written("vtt", segments, layout_of(entry[1]));
        EXPECT_EQ(test::fnv1a(srt), entry[2].get<std::string>())
            << entry[0] << entry[1] << "\n" << srt;
        EXPECT_EQ(test::fnv1a(vtt), entry[3].get<std::string>())
            << entry[0] << entry[1] << "\n" << vtt;
        ++compared;
    }
    EXPECT_EQ(compared, 3 * 6 * 4 * 4 * 2);
}

// Consecutive words of a tenth of a second each.
Segment subtitles_segment(const Texts& words, double start = 0) {
    Segment subtitles_segment;
    subtitles_segment.start = start;
    subtitles_segment.words.emplace();
    for (const std::string& word : words) {
        subtitles_segment.words->push_back({word, start, start + 0.1, 0.5});
        subtitles_segment.text += word;
        start += 0.1;
    }
    subtitles_segment.end = start;
    return subtitles_segment;
}

// The cues' texts.
Texts cues(const std::vector<Segment>& segments, const SubtitleLayout& layout) {
    Texts texts;
    CueMaker maker(layout, [&](const Cue& cue) {
        std::string text;
        for (const CueWord& word : cue.words) text += (word.new_line ? "\n" : "") + word.text;
        texts.push_back(text);
    });
    for (const Segment& one : segments) maker.add(one);
    maker.finish();
    return texts;
}

TEST(Subtitles, CountColumns) {
    // Chinese is cut into characters, each of two columns.
    const Segment home = subtitles_segment({"我", "的", "家", "在", "海", "边", "。"});
    EXPECT_EQ(cues({home}, {6}), (Texts{"我的家\n在海边\n。"}));
    EXPECT_EQ(cues({home}, {7, 1}), (Texts{"我的家", "在海边", "。"}));
    EXPECT_EQ(cues({home}, {1}), (Texts{"我\n的\n家\n在\n海\n边\n。"}));
    EXPECT_EQ(cues({home}, {0, 0, 3}), (Texts{"我的家", "在海边", "。"}));
    EXPECT_EQ(cues({subtitles_segment({" ab", "家", " cd"})}, {7}), (Texts{"ab家 cd"}));
    EXPECT_EQ(cues({subtitles_segment({" ab", "家", " cd"})}, {6}), (Texts{"ab家\ncd"}));
    // Marks take no room.
    EXPECT_EQ(cues({subtitles_segment({" e\u0301te\u0301", " e\u0301te\u0301"})}, {7}),
              (Texts{"e\u0301te\u0301 e\u0301te\u0301"}));
}

TEST(Subtitles, NeverCutAGrapheme) {
    // Each code point is a word where a language has no spaces.
    const Segment family =
        subtitles_segment({"好", "👨", "\u200d", "👩", "\u200d", "👧", "🇩", "🇪", "🇫", "🇷"});
    EXPECT_EQ(cues({family}, {1}), (Texts{"好\n👨\u200d👩\u200d👧\n🇩🇪\n🇫🇷"}));
    EXPECT_EQ(cues({family}, {4, 1}), (Texts{"好👨\u200d👩\u200d👧", "🇩🇪🇫🇷"}));
    EXPECT_EQ(cues({family}, {0, 0, 1}), (Texts{"好", "👨\u200d👩\u200d👧", "🇩🇪", "🇫🇷"}));
    EXPECT_EQ(cues({subtitles_segment({"ท", "ี", "่", "น", "ี", "่"})}, {1}), (Texts{"ที่\nนี่"}));
    EXPECT_EQ(cues({subtitles_segment({" e", "\u0301", "t"})}, {1}), (Texts{"e\u0301\nt"}));
    // Nor does what is underlined.
    const std::string srt = subtitles_written(
        "srt", {subtitles_segment({"e", "\u0301", "👍", "🏽"})}, {0, 0, 0, true});
    EXPECT_EQ(srt,
              "1\n00:00:00,000 --> 00:00:00,200\n<u>e\u0301</u>👍🏽\n\n"
              "2\n00:00:00,200 --> 00:00:00,400\ne\u0301<u>👍🏽</u>\n\n");
}

TEST(Subtitles, LeaveRightToLeftInItsLogicalOrder) {
    const Segment hebrew = subtitles_segment({" שלום", " לכם", ",", " ילדים", " 42", "!"});
    EXPECT_EQ(cues({hebrew}, {}), (Texts{"שלום לכם, ילדים 42!"}));
    EXPECT_EQ(cues({hebrew}, {9}), (Texts{"שלום לכם,\nילדים 42!"}));
    EXPECT_EQ(cues({hebrew}, {9, 1}), (Texts{"שלום לכם,", "ילדים 42!"}));
    EXPECT_EQ(cues({subtitles_segment({" سَلَام", " يا", " بيت"})}, {7}), (Texts{"سَلَام يا\nبيت"}));
}

// What a line may not be: too wide, unless of one word; cut within a grapheme; of other text.
TEST(Subtitles, HoldTheirWidthAndTheirTextWhateverTheWords) {
    const Texts pieces = {" a", " house", " Äpfel", "我",    "家", "👨",     "\u200d", "👩",     "🇩",
                          "🇪",  "e",      "\u0301", " שלום", ",",  " سَلَام", "❤",      "\ufe0f"};
    std::mt19937 draw(11);
    for (int round = 0; round < 400; ++round) {
        Texts words;
        for (size_t n = 1 + draw() % 40; n > 0; --n)
            words.push_back(pieces[draw() % pieces.size()]);
        const Segment one = subtitles_segment(words);
        const SubtitleLayout layout = {static_cast<int64_t>(draw() % 12),
                                       static_cast<int64_t>(draw() % 3),
                                       static_cast<int64_t>(draw() % 4)};
        std::string text, expected;
        CueMaker maker(layout, [&](const Cue& cue) {
            std::string line;
            int words_of_line = 0;
            for (const CueWord& word : cue.words) {
                if (word.new_line) line.clear(), words_of_line = 0;
                line += word.text;
                text += word.text;
                ++words_of_line;
                if (layout.max_line_width > 0 && words_of_line > 1) {
                    EXPECT_LE(display_width(line), layout.max_line_width) << line;
                }
            }
        });
        maker.add(one);
        maker.finish();
        const auto without_spaces = [](std::string from) {
            std::erase(from, ' ');
            return from;
        };
        EXPECT_EQ(without_spaces(text), without_spaces(one.text));
    }
}

TEST(Subtitles, OfSegmentsWithoutWordsAndOfWordsWithoutText) {
    Segment plain;
    plain.start = 1;
    plain.end = 2;
    plain.text = " One\n two.";
    EXPECT_EQ(cues({plain}, {3}), Texts{"One  two."});
    EXPECT_EQ(
        cues({subtitles_segment({}), subtitles_segment({" "}), subtitles_segment({" a"})}, {}),
        Texts{"a"});
    EXPECT_EQ(cues({subtitles_segment({" a\r\n\r\nb", " c"})}, {}), Texts{"a    b c"});
}

// The last word of a subtitles_segment may end after the next subtitles_segment's first word
// begins.
TEST(Subtitles, HighlightingNeverGoesBackInTime) {
    Segment first = subtitles_segment({" a", " b"}), second = subtitles_segment({" c"}, 0.15);
    EXPECT_EQ(subtitles_written("vtt", {first, second}, {80, 1, 0, true}),
              "WEBVTT\n\n00:00.000 --> 00:00.100\n<u>a</u> b c\n\n"
              "00:00.100 --> 00:00.200\na <u>b</u> c\n\n"
              "00:00.150 --> 00:00.250\na b <u>c</u>\n\n");
}

TEST(Subtitles, EscapeWhatAFormatTakesForItsOwn) {
    const Segment marks = subtitles_segment({" {\\an8}", " a<b", " &amp;", " --", ">"});
    EXPECT_EQ(subtitles_written("vtt", {marks}, {0, 0, 0, false}),
              "WEBVTT\n\n00:00.000 --> 00:00.500\n{\\an8} a&lt;b &amp;amp; ->\n\n");
    EXPECT_EQ(subtitles_written("srt", {marks}, {}),
              "1\n00:00:00,000 --> 00:00:00,500\n{\\an8} a<b &amp; ->\n\n");
    const std::string ass = subtitles_written("ass", {marks}, {});
    EXPECT_NE(ass.find("{\\k10}\\{\\\u2060an8\\}{\\k10} a<b{\\k10} &amp;{\\k10} --{\\k10}>\n"),
              ass.npos)
        << ass;
}

TEST(Subtitles, KaraokeTellsEachWordsTime) {
    Segment one = subtitles_segment({" One", " two", " three"}, 61);
    (*one.words)[1] = {" two", 61.25, 61.5, 0.5};
    (*one.words)[2] = {" three", 61.4, 3662.0, 0.5};  // begins before the last has ended
    const std::string ass = subtitles_written("ass", {one}, {8});
    EXPECT_TRUE(ass.starts_with("[Script Info]\nScriptType: v4.00+\n"));
    EXPECT_EQ(ass.substr(ass.find("Dialogue")),
              "Dialogue: 0,0:01:01.00,1:01:02.00,Default,,0,0,0,,"
              "{\\k10}One{\\k15}{\\k25} two\\N{\\k360050}three\n");
    one.words.reset();
    one.text = " One two three";
    EXPECT_TRUE(subtitles_written("ass", {one}, {}).ends_with(",,0,0,0,,One two three\n"));
}

}  // namespace
}  // namespace hark::whisper
