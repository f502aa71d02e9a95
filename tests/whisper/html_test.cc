// The page of --format html. tests/page.sh opens it in a browser.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json/json.h"
#include "support/expect.h"
#include "whisper/output/formats.h"

namespace hark::whisper {
namespace {

// Everything that could end a script, an element, an attribute or a line of JavaScript.
const std::string kHostile =
    "</script><script>alert(1)</script><!-- \"'&amp;\\ \u2028\u2029 {{style}}";

Segment html_segment(const std::string& text) {
    Segment segment;
    segment.start = 0.5;
    segment.end = 2;
    segment.text = text;
    segment.words = {{text, 0.5, 2, 0.25}};
    return segment;
}

std::string html_page(const RecordingInfo& info, const std::string& text,
                      const std::string& error = "") {
    std::string out;
    auto writer = make_transcript_writer("html", [&](const std::string& part) { out += part; });
    EXPECT_FALSE(writer->joins_recordings());
    writer->begin(info);
    writer->segment(html_segment(text));
    writer->end(text, error);
    return out;
}

// What is between the first `begin` and the next `end`.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
    const size_t at = text.find(begin);
    EXPECT_NE(at, std::string::npos) << begin;
    const size_t from = at + begin.size();
    return text.substr(from, text.find(end, from) - from);
}

// The lines that are shown without scripts.
std::string lines_in(const std::string& page) {
    const std::string element = between(page, "<pre ", "</pre>");
    return element.substr(element.find('>') + 1);
}

std::string transcript_in(const std::string& page) {
    return between(page, "<script type=\"application/json\" id=\"transcript\">", "</script>");
}

size_t html_count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
    return found;
}

TEST(Html, HasTheObjectOfJson) {
    const RecordingInfo info = {"talks/a b.wav", "1", "de"};
    std::string json;
    auto writer = make_transcript_writer("json", [&](const std::string& part) { json += part; });
    writer->begin(info);
    writer->segment(html_segment(" Eins"));
    writer->end(" Eins", "broke");
    const std::string page = html_page(info, " Eins", "broke");
    EXPECT_EQ(nlohmann::json::parse(transcript_in(page)), nlohmann::json::parse(json));
    EXPECT_EQ(between(page, "<title>", "</title>"), "a b.wav, channel 1");
    EXPECT_EQ(between(page, "<pre lang=\"de\">", "</pre>"), "Eins\n");
}

TEST(Html, NoTextBreaksIt) {
    const std::string harmless = html_page({"a.wav", "0", "en"}, " One");
    const std::string page = html_page({kHostile, "0", kHostile}, kHostile, kHostile);
    const auto transcript = nlohmann::json::parse(transcript_in(page));
    EXPECT_EQ(transcript["source"], kHostile);
    EXPECT_EQ(transcript["error"], kHostile);
    EXPECT_EQ(transcript["segments"][0]["words"][0]["word"], kHostile);
    // What marks up the page is the page's own.
    for (const char* mark : {"<script", "</script>", "<!--", "<title>", "<pre ", ":root {"})
        EXPECT_EQ(html_count(page, mark), html_count(harmless, mark)) << mark;
    EXPECT_EQ(html_count(between(page, "<pre ", ">"), "\""), 2u);
    EXPECT_EQ(transcript_in(page).find('<'), std::string::npos);
    EXPECT_EQ(transcript_in(page).find("\u2028"), std::string::npos);
    EXPECT_EQ(lines_in(page),
              "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;!-- &quot;&#39;&amp;amp;\\ "
              "\u2028\u2029 {{style}}\n");
    EXPECT_EQ(between(page, "<title>", "</title>"),
              "script&gt;&lt;!-- &quot;&#39;&amp;amp;\\ \u2028\u2029 {{style}}");
}

TEST(Html, IsValidUtf8OnLinesOfItsOwn) {
    const std::string page = html_page({"bad\xff\n.wav", "0", "en"}, " x\xff\ny");
    EXPECT_EQ(between(page, "<title>", "</title>"), "bad\ufffd .wav");
    EXPECT_EQ(lines_in(page), "x\ufffd y\n");
    EXPECT_EQ(nlohmann::json::parse(transcript_in(page))["text"], " x\ufffd\ny");
}

TEST(Html, AsksForNothingFromElsewhere) {
    const std::string page = html_page({"a.wav", "0", "en"}, " One");
    test::expect_contains(page, "content=\"default-src 'none';");
    for (const char* address : {"http:", "https:", "//www", "src=", "@import", "url("})
        EXPECT_EQ(html_count(page, address), 0u) << address;
    EXPECT_EQ(html_count(page, "href="), 1u);  // of its icon, which is empty
    test::expect_contains(page, "href=\"data:,\"");
    EXPECT_EQ(html_count(page, "{{"), 0u);
}

TEST(Html, MarksWordsAsTheTerminalDoes) {
    const std::string page = html_page({"a.wav", "0", "en"}, " One");
    const std::string limits = between(page, "const kLowProbability = ", ";");
    EXPECT_EQ(limits, concat(kLowProbability, ", kHighProbability = ", kHighProbability));
}

}  // namespace
}  // namespace hark::whisper
