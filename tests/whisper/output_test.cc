// Names of transcripts, and what becomes of a recording whose files cannot be written.
#include "whisper/output.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/process.h"
#include "text/utf8.h"

namespace hark::whisper {
namespace {

namespace fs = std::filesystem;

Segment segment(const std::string& text) {
    Segment s;
    s.end = 1;
    s.text = text;
    return s;
}

std::set<std::string> names_in(const fs::path& directory) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory))
        names.insert(entry.path().filename().string());
    return names;
}

// What broke the recording.
std::string put(TranscriptOutput& output, const std::string& source,
                const std::string& channel = "0") {
    output.begin({source, channel, "en"});
    output.segment(segment(" Hello."));
    return output.end(" Hello.", "");
}

TEST(Output, WritesAFileARecordingAndFormatAndKeepsNamesApart) {
    test::TemporaryDirectory directory;
    OutputOptions options{{"text", "srt"}, (directory.path() / "made").string()};
    TranscriptOutput output(options);
    for (const char* source : {"x/a.wav", "y/a.mp3", "z/.."}) {
        output.begin({source, "0", "en"});
        output.segment(segment(" Hello."));
        output.end(" Hello.", "");
    }
    output.begin({"s.wav", "1", "en"});
    output.end("", "");
    output.begin({"broken.wav", "0", "en"});
    output.segment(segment(" Half."));
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
    try {
        output.begin({"b", "0", "en"});
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(),
                     "b: srt on stdout holds one recording, and a is written already; "
                     "use --output-dir DIR for several");
    }
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

TEST(Output, ANameOfAnyLengthAndBytesIsWritten) {
    test::TemporaryDirectory directory;
    const OutputOptions options{transcript_formats(), directory.path().string()};
    TranscriptOutput output(options);
    const size_t formats = transcript_formats().size();
    size_t files = 0;
    std::string euros;
    for (int i = 0; i < 100; ++i) euros += "€";
    for (const std::string& source :
         {std::string(251, 'x') + ".wav", std::string(251, 'x') + ".mp3", std::string(248, 'y'),
          std::string(5000, 'z'), euros, "a" + euros, "aa" + euros, std::string("nul\0nul.wav", 11),
          std::string(1, '\0'), std::string("bad\xff.wav"), std::string(300, '\xff')}) {
        EXPECT_EQ(put(output, source), "") << source;
        files += formats;
        EXPECT_EQ(names_in(directory.path()).size(), files) << source;
    }
    EXPECT_EQ(put(output, "s.wav", "../../1/" + std::string(300, 'c')), "");
    const std::set<std::string> names = names_in(directory.path());
    EXPECT_EQ(names.size(), files + formats);
    for (const std::string& name : names) EXPECT_TRUE(is_valid_utf8(name)) << name;
    EXPECT_TRUE(names.contains("nul_nul.txt"));
    EXPECT_TRUE(names.contains("bad\ufffd.txt"));
    EXPECT_TRUE(names.contains("_.txt"));
    size_t longest = 0;
    for (const std::string& name : names) longest = std::max(longest, name.size());
    EXPECT_GE(longest, 240u);  // no shorter than it must be
}

TEST(Output, AFileThatCannotBeWrittenFailsItsRecordingAlone) {
    test::TemporaryDirectory directory;
    const std::string summary = (directory.path() / "summary").string();
    TranscriptOutput output({{"text", "json"}, (directory.path() / "out").string(), summary});
    fs::create_directories(directory.path() / "out/b.txt/full");
    EXPECT_EQ(put(output, "a.wav"), "");
    EXPECT_NE(put(output, "b.wav").find("out/b.txt: cannot"), std::string::npos);
    EXPECT_EQ(put(output, "c.wav"), "");
    EXPECT_EQ(names_in(directory.path() / "out"),
              (std::set<std::string>{"a.json", "a.txt", "b.txt", "c.json", "c.txt"}));
    EXPECT_NE(test::read_text(summary).find("\nb.wav\t0\tb\t0.00\t" + directory.path().string()),
              std::string::npos)
        << test::read_text(summary);
    // The recording's own error stays.
    output.begin({"b.wav", "0", "en"});
    fs::create_directory(directory.path() / "out/b-2.json");
    const std::string both = output.end("", "it broke");
    EXPECT_TRUE(both.starts_with("it broke; ")) << both;
    // Nothing is left of what could not be finished.
    fs::remove_all(directory.path() / "out");
    EXPECT_NE(put(output, "d.wav"), "");
    fs::create_directory(directory.path() / "out");
    EXPECT_EQ(put(output, "e.wav"), "");
    EXPECT_EQ(names_in(directory.path() / "out"), (std::set<std::string>{"e.json", "e.txt"}));
}

}  // namespace
}  // namespace hark::whisper
