// What hark-redact finds in texts, and what it makes of lines.
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "core/json/json.h"
#include "operations/redact/checksums.h"
#include "operations/redact/finder.h"
#include "operations/redact/mute_list.h"
#include "operations/redact/transcript_redactor.h"
#include "support/error_of.h"
#include "support/expect.h"
#include "support/process.h"

namespace hark::redact {
namespace {

using Json = nlohmann::json;

std::vector<Kind> all_kinds() { return {std::begin(kKinds), std::end(kKinds)}; }
Finder everything() { return Finder(all_kinds(), {}); }

// The text with what was found in it as <kind:...>.
std::string marked(const std::string& text, const std::vector<Finding>& findings) {
    std::string shown;
    size_t done = 0;
    for (const Finding& finding : findings) {
        shown += text.substr(done, finding.begin - done) + "<" +
                 std::string(name_of(finding.kind)) + ":" +
                 text.substr(finding.begin, finding.end - finding.begin) + ">";
        done = finding.end;
    }
    return shown + text.substr(done);
}

std::string found_in(const Finder& finder, const std::string& text) {
    return marked(text, finder.find(text));
}

// A case's text, and what is marked in it.
std::string unmarked(const std::string& line, std::vector<Finding>& expected) {
    std::string text;
    for (size_t at = 0; at < line.size(); ++at) {
        if (line[at] != '<') {
            text += line[at];
            continue;
        }
        const size_t colon = line.find(':', at), end = line.find('>', at);
        const std::string name = line.substr(at + 1, colon - at - 1);
        Finding finding{text.size(), 0, Kind::number};
        for (const Kind kind : kKinds)
            if (name == name_of(kind)) finding.kind = kind;
        text += line.substr(colon + 1, end - colon - 1);
        finding.end = text.size();
        expected.push_back(finding);
        at = end;
    }
    return text;
}

struct Score {
    int expected = 0, found = 0, right = 0;
};

TEST(Redact, FindsWhatItPromisesInTheCases) {
    std::ifstream cases(test::source_dir() / "tests/operations/redact_cases.txt");
    const Finder finder = everything();
    Score machine, person;  // what it looks for; what only a person finds
    bool for_persons = false;
    std::string wrong;
    for (std::string line; std::getline(cases, line);) {
        for_persons = for_persons || line == "# What only a person finds.";
        if (line.starts_with('#')) continue;
        std::vector<Finding> expected;
        const std::string text = unmarked(line, expected);
        const std::vector<Finding> found = finder.find(text);
        Score& score = for_persons ? person : machine;
        score.expected += static_cast<int>(expected.size());
        score.found += static_cast<int>(found.size());
        for (const Finding& want : expected)
            for (const Finding& got : found)
                score.right +=
                    want.begin == got.begin && want.end == got.end && want.kind == got.kind;
        if (!for_persons && marked(text, found) != line)
            wrong += "\n  expected " + line + "\n  found    " + marked(text, found);
    }
    EXPECT_EQ(wrong, "");
    EXPECT_EQ(machine.right, machine.expected);  // recall 1
    EXPECT_EQ(machine.right, machine.found);     // precision 1
    EXPECT_GE(machine.expected, 60);
    EXPECT_EQ(person.right, 0);
    EXPECT_GE(person.expected, 5);
}

TEST(Redact, LeavesOutKindsThatAreNotAskedFor) {
    const std::string text = "On 2024-05-01 call 415-555-0123 or mail a@b.org.";
    EXPECT_EQ(found_in(Finder({Kind::email}, {}), text),
              "On 2024-05-01 call 415-555-0123 or mail <email:a@b.org>.");
    EXPECT_EQ(found_in(Finder({Kind::phone}, {}), text),
              "On 2024-05-01 call <phone:415-555-0123> or mail a@b.org.");
}

TEST(Redact, ListedWordsAreWholeOnesInAnyCase) {
    WordList words;
    for (const char* phrase :
         {"Anna Schmidt", "anna", "Müller", "ÉCOLE Nationale", "!?", "Baker Street"})
        words.add(phrase);
    const Finder finder({}, words);
    EXPECT_EQ(found_in(finder, "ANNA Schmidt's aunt Anna, and Susanna MÜLLER."),
              "<listed:ANNA Schmidt>'s aunt <listed:Anna>, and Susanna <listed:MÜLLER>.");
    EXPECT_EQ(found_in(finder, "Baker. Street: école nationale!"),
              "<listed:Baker. Street>: <listed:école nationale>!");
    // The same letters, composed and not.
    EXPECT_EQ(found_in(finder, "Herr Mu\u0308ller."), "Herr <listed:Mu\u0308ller>.");
}

TEST(Redact, ListsAreFilesOfLines) {
    const test::TemporaryDirectory directory;
    const std::string file = directory.path() / "names";
    test::write_text(file, "# names\n\nAnna\r\n Bob Miller \n");
    WordList words;
    words.add_file(file);
    EXPECT_EQ(found_in(Finder({}, words), "anna and bob  miller"),
              "<listed:anna> and <listed:bob  miller>");
    WordList none;
    test::write_text(file, "# names\n");
    test::expect_contains(test::error_of([&] { none.add_file(file); }),
                          "expected a word or a phrase on each line, found none");
    test::write_text(file, "M\xfcller\n");
    test::expect_contains(test::error_of([&] { none.add_file(file); }), "not UTF-8");
}

TEST(Redact, CheckDigits) {
    EXPECT_TRUE(passes_luhn("4111111111111111"));
    EXPECT_FALSE(passes_luhn("4111111111111112"));
    EXPECT_TRUE(passes_mod_97("GB82WEST12345698765432"));
    EXPECT_FALSE(passes_mod_97("GB82WEST12345698765433"));
    EXPECT_EQ(iban_length("DE"), 22u);
    EXPECT_EQ(iban_length("US"), 0u);
}

TEST(Redact, HostileTextsEnd) {
    const Finder finder = everything();
    std::string digits, words, dots = "a", host = "a at a", letters = "1 a@a.de ";
    for (int i = 0; i < 5000; ++i) {
        digits += "4 ";
        words += "one oh double ";
        dots += ".a@a";
        host += " dot a";
        letters += "a at b c ";
    }
    host += " a at a.de";
    for (const std::string& text :
         {digits, words, dots, host, letters, words + dots + digits + host + letters})
        EXPECT_FALSE(finder.find(text).empty());
}

struct Redacted {
    std::vector<Json> lines;
    std::vector<std::string> raw;
    std::string mutes;
    std::map<Kind, int64_t> counts;
};

Redacted redacted(const std::vector<Json>& lines) {
    Redacted result;
    MuteList mutes;
    TranscriptRedactor redactor(
        everything(),
        [&](const std::string& line) {
            result.raw.push_back(line);
            result.lines.push_back(Json::parse(line));
        },
        [&](const std::string&, double begin, double end) { mutes.add(begin, end); });
    int number = 0;
    for (const Json& line : lines)
        redactor.add(line.dump(), "stdin: line " + std::to_string(++number));
    redactor.finish();
    result.mutes = mutes.filter();
    result.counts = redactor.counts();
    return result;
}

// A segment whose words take half a second each.
Json segment(const std::string& text, double start, bool with_words = true,
             const std::string& source = "a.wav") {
    Json json = {{"source", source}, {"start", start},   {"end", start + 10},
                 {"text", text},     {"tokens", {1, 2}}, {"language", "en"}};
    if (!with_words) return json;
    json["words"] = Json::array();
    double at = start;
    for (size_t begin = 0; begin < text.size();) {
        size_t end = text.find(' ', begin + 1);
        end = std::min(end, text.size());
        json["words"].push_back({{"word", text.substr(begin, end - begin)},
                                 {"start", at},
                                 {"end", at + 0.5},
                                 {"probability", 0.9}});
        at += 0.5;
        begin = end;
    }
    return json;
}

TEST(Redact, TextWordsAndTokensOfASegment) {
    const Redacted got = redacted({segment(" Call 415 555 0123, or a@b.org.", 4)});
    const Json& line = got.lines.at(0);
    EXPECT_EQ(line["text"], " Call [PHONE], or [EMAIL].");
    EXPECT_EQ(line["tokens"], Json::array());
    ASSERT_EQ(line["words"].size(), 4u);
    EXPECT_EQ(line["words"][1]["word"], " [PHONE],");
    EXPECT_EQ(line["words"][1]["start"], 4.5);
    EXPECT_EQ(line["words"][1]["end"], 6.0);
    EXPECT_EQ(line["words"][2]["word"], " or");
    EXPECT_EQ(line["words"][3]["word"], " [EMAIL].");
    EXPECT_EQ(got.mutes, "volume=0:enable='between(t,4.250,7.250)'\n");
    EXPECT_EQ(got.counts.at(Kind::phone), 1);
    EXPECT_EQ(got.counts.at(Kind::email), 1);
}

TEST(Redact, WithoutWordsTheSegmentIsMuted) {
    EXPECT_EQ(redacted({segment(" It's a@b.org.", 0.1, false)}).mutes,
              "volume=0:enable='between(t,0.000,10.350)'\n");
    Json other = segment(" It's a@b.org.", 2);
    other["words"][0]["word"] = " It";  // the words are not the text
    const Redacted got = redacted({other});
    EXPECT_EQ(got.lines[0]["words"], Json::array());
    EXPECT_EQ(got.mutes, "volume=0:enable='between(t,1.750,12.250)'\n");
    EXPECT_EQ(redacted({segment(" Nothing here.", 0)}).mutes, "anull\n");
}

TEST(Redact, ANumberOverSegmentsIsFoundWhole) {
    const Redacted got =
        redacted({segment(" Mine is four one five,", 0), segment(" five five five,", 10),
                  segment(" oh one two three. Right?", 20), segment(" Yes.", 30),
                  segment(" 555 0123 is another's.", 0, true, "b.wav")});
    ASSERT_EQ(got.lines.size(), 5u);
    EXPECT_EQ(got.lines[0]["text"], " Mine is [PHONE]");
    EXPECT_EQ(got.lines[1]["text"], "[PHONE]");
    EXPECT_EQ(got.lines[2]["text"], "[PHONE]. Right?");
    EXPECT_EQ(got.lines[3]["text"], " Yes.");
    EXPECT_EQ(got.lines[3]["tokens"], Json({1, 2}));
    EXPECT_EQ(got.lines[4]["text"], " [PHONE] is another's.");
    EXPECT_EQ(got.counts.at(Kind::phone), 2);
}

TEST(Redact, WhatHasNoFindingStaysByteByByte) {
    std::string written;
    TranscriptRedactor redactor(
        everything(), [&](const std::string& line) { written += line; }, nullptr);
    const std::string line = "{ \"source\":\"415-555-0123.wav\",\"start\":1.50,\"text\":\" Hi.\" }";
    redactor.add(line, "stdin: line 1");
    redactor.finish();
    EXPECT_EQ(written, line);
}

TEST(Redact, StringsOfOtherProgramsAreSearched) {
    Json line = segment(" Hi.", 0);
    line["summary"] = {{"who", {"call 415-555-0123"}}};
    line["id"] = "2024-05-01";
    const Redacted got = redacted({line});
    EXPECT_EQ(got.lines[0]["summary"]["who"][0], "call [PHONE]");
    EXPECT_EQ(got.lines[0]["id"], "2024-05-01");
    EXPECT_EQ(got.lines[0]["tokens"], Json({1, 2}));
}

TEST(Redact, WhatIsNoSegmentIsAnError) {
    EXPECT_EQ(redacted({{{"source", "a"}, {"error", "a: broken"}}}).raw.size(), 1u);
    for (const Json& wrong : {Json::array(), Json{{"words", 1}}, Json{{"text", 1}}})
        test::expect_contains(test::error_of([&] { redacted({wrong}); }), "stdin: line 1: ");
    TranscriptRedactor redactor(
        everything(), [](const std::string&) {}, nullptr);
    test::expect_contains(test::error_of([&] { redactor.add("{", "stdin: line 9"); }),
                          "stdin: line 9: ");
}

}  // namespace
}  // namespace hark::redact
