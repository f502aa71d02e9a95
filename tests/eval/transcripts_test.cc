// Transcripts as JSON lines, and which reference belongs to which hypothesis.
#include "eval/transcripts.h"

#include <gtest/gtest.h>

#include "eval/error_report.h"
#include "text/unicode.h"

using namespace hark;

namespace {

std::vector<Transcript> parse(std::string_view lines) {
    std::vector<std::string> problems;
    std::vector<Transcript> found = parse_transcripts(lines, "L", problems);
    EXPECT_TRUE(problems.empty()) << problems.front();
    return found;
}

std::string problem_of(std::string_view line) {
    std::vector<std::string> problems;
    EXPECT_TRUE(parse_transcripts(line, "L", problems).empty());
    return problems.size() == 1 ? problems.front() : "";
}

// The sources of the hypotheses that the references are paired with, "-" if there is none, then
// those of the extra ones.
std::string paired(const std::vector<std::string>& references,
                   const std::vector<std::string>& hypotheses) {
    const auto transcripts = [](const std::vector<std::string>& sources) {
        std::vector<Transcript> made;
        for (const std::string& source : sources) made.push_back({source});
        return made;
    };
    const auto known = transcripts(references), found = transcripts(hypotheses);
    const TranscriptPairs pairs = pair_transcripts(known, found);
    std::string text;
    for (const Transcript* hypothesis : pairs.hypotheses)
        text += (hypothesis ? hypothesis->source : "-") + " ";
    for (const Transcript* hypothesis : pairs.extra) text += "+" + hypothesis->source + " ";
    return text;
}

}  // namespace

TEST(Transcripts, JoinsTheLinesOfASource) {
    const auto found = parse(
        "{\"source\": \"b\", \"start\": 0.0, \"text\": \" One two\"}\n"
        "\n"
        "{\"source\": \"a\", \"text\": \"x\"}\r\n"
        "{\"source\": \"b\", \"start\": 2.5, \"text\": \" three.\"}\n"
        "{\"source\": \"a\", \"text\": \"y\"}\n"
        "{\"source\": \"a\", \"channel\": \"1\", \"text\": \"z\"}\n"
        "{\"source\": \"b\", \"error\": \"broken\"}\n"
        "{\"source\": \"c\", \"error\": \"gone\"}");
    ASSERT_EQ(found.size(), 4u);
    EXPECT_EQ(found[0].name(), "b");
    EXPECT_EQ(found[0].text, " One two three.");
    EXPECT_EQ(found[0].error, "broken");
    EXPECT_EQ(found[1].text, "x y");
    EXPECT_EQ(found[2].name(), "a (channel 1)");
    EXPECT_EQ(found[2].text, "z");
    EXPECT_EQ(found[3].text, "");
    EXPECT_EQ(found[3].error, "gone");
}

TEST(Transcripts, PutsNoSpaceIntoScriptsWithoutSpaces) {
    EXPECT_EQ(
        parse("{\"source\":\"a\",\"text\":\"今日は。\"}\n{\"source\":\"a\",\"text\":\"世界\"}")[0]
            .text,
        "今日は。世界");
    EXPECT_EQ(
        parse("{\"source\":\"a\",\"text\":\"été\"}\n{\"source\":\"a\",\"text\":\"élan\"}")[0].text,
        "été élan");
}

TEST(Transcripts, NamesTheLineThatIsWrongAndReadsOn) {
    EXPECT_EQ(problem_of("{\"source\":"),
              "L: line 1: expected a JSON object, found text that is not JSON");
    EXPECT_EQ(problem_of("\n[1]"), "L: line 2: expected a JSON object, found array");
    EXPECT_EQ(problem_of("{\"text\": \"x\"}"),
              "L: line 1: expected a string named source, found none");
    EXPECT_EQ(problem_of("{\"source\": \"x\"}"),
              "L: line 1: expected a string named text, or error, found neither");
    EXPECT_EQ(problem_of("{\"source\": \"x\", \"text\": 7}"),
              "L: line 1: text: expected a string, found number");
    EXPECT_NE(problem_of(std::string(100, '[')), "");
    std::vector<std::string> problems;
    const auto found =
        parse_transcripts("x\n{\"source\":\"a\",\"text\":\"b\"}\ny\n", "L", problems);
    EXPECT_EQ(found.size(), 1u);
    EXPECT_EQ(problems.size(), 2u);
}

TEST(Transcripts, PairsNamesThenFileNames) {
    EXPECT_EQ(paired({"a.wav", "b.wav"}, {"b.wav", "a.wav"}), "a.wav b.wav ");
    EXPECT_EQ(paired({"x/a.wav", "b"}, {"y/a.mp3", "c.wav"}), "y/a.mp3 - +c.wav ");
    // Two that could be meant: neither is.
    EXPECT_EQ(paired({"x/a.wav", "y/a.wav"}, {"a.mp3"}), "- - +a.mp3 ");
    EXPECT_EQ(paired({"a.wav"}, {"x/a.mp3", "y/a.mp3"}), "- +x/a.mp3 +y/a.mp3 ");
    EXPECT_EQ(paired({"x/a.wav", "y/a.wav"}, {"x/a.wav", "a.mp3"}), "x/a.wav - +a.mp3 ");
    EXPECT_EQ(paired({}, {"a"}), "+a ");
}

TEST(ErrorReport, AlignsWordsInColumns) {
    const Comparison found =
        compare_words("the old captain walked home", "the captain walks home now");
    EXPECT_EQ(differences_as_text(found, 80),
              "  REF the old captain walked home ***\n"
              "  HYP the *** captain walks  home now\n"
              "          D           S           I\n\n");
    // Wide letters take two columns, and a line without a difference is left out.
    EXPECT_EQ(differences_as_text(compare_words("你 好 a b c", "你 们 a b c"), 7),
              "  REF 你 好\n"
              "  HYP 你 们\n"
              "         S\n\n");
    EXPECT_EQ(differences_as_text(compare_words("a b", "a b"), 80), "");
    EXPECT_EQ(differences_as_text(compare_words("", ""), 80), "");
}

TEST(Unicode, LowerCaseOfSigmaAndDottedI) {
    EXPECT_EQ(lower_case("ΟΔΟΣ ΣΑΣ’Α Σ İ"), "οδος σασ’α σ i\u0307");
    EXPECT_EQ(digit_value(U'٣'), 3);
    EXPECT_EQ(digit_value(U'\U0001D7CF'), 1);  // mathematical digits: sets of ten that touch
    EXPECT_EQ(digit_value(U'\U0001D7D8'), 0);
    EXPECT_EQ(digit_value(U'²'), -1);
    EXPECT_EQ(words_of(" a\u3000b\x1c ").size(), 2u);
}
