// Names of transcripts, and what becomes of a recording whose files cannot be written.
#include "whisper/output/output.h"

#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "support/process.h"
#include "text/utf8.h"

namespace hark::whisper {
namespace {

namespace fs = std::filesystem;

Segment output_segment(const std::string& text) {
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

void plan_and_begin(TranscriptOutput& output, const RecordingInfo& info) {
    output.plan(info);
    output.begin(info);
}

// What broke the recording.
std::string put(TranscriptOutput& output, const std::string& source,
                const std::string& channel = "0") {
    plan_and_begin(output, {source, channel, "en"});
    output.segment(output_segment(" Hello."));
    return output.end(" Hello.", "");
}

TEST(Output, WritesAFileARecordingAndFormatAndKeepsNamesApart) {
    test::TemporaryDirectory directory;
    OutputOptions options{{"text", "srt"}, (directory.path() / "made").string()};
    TranscriptOutput output(options);
    for (const char* source : {"x/a.wav", "y/a.mp3", "z/.."}) {
        plan_and_begin(output, {source, "0", "en"});
        output.segment(output_segment(" Hello."));
        output.end(" Hello.", "");
    }
    plan_and_begin(output, {"s.wav", "1", "en"});
    output.end("", "");
    plan_and_begin(output, {"broken.wav", "0", "en"});
    output.segment(output_segment(" Half."));
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
    plan_and_begin(output, {"x/a.wav", "0", "en", 3.456});
    EXPECT_EQ(test::read_text(summary), expected);
    output.end("", "");
    EXPECT_EQ(test::read_text(summary), expected += "x/a.wav\t0\ta\t3.46\t\n");
    plan_and_begin(output, {"y/a\tb\n.wav", "1", "", 0});
    output.end("", "no\r\naudio");
    EXPECT_EQ(test::read_text(summary), expected += "y/a b .wav\t1\ta b .1\t0.00\tno  audio\n");
    TranscriptOutput on_stdout({{"text"}, "", summary});
    plan_and_begin(on_stdout, {"a.wav", "0", "en", 7200});
    on_stdout.end("", "");
    EXPECT_EQ(test::read_text(summary),
              "source\tchannel\tfile\tseconds\terror\na.wav\t0\t-\t7200.00\t\n");
    EXPECT_THROW(TranscriptOutput({{"text"}, "", (directory.path() / "no/file").string()}), Error);
}

TEST(Output, ASecondRecordingOfSubtitlesOnStdoutIsAnError) {
    TranscriptOutput output({{"srt"}, ""});
    plan_and_begin(output, {"a", "0", "en"});
    output.end("", "");
    try {
        plan_and_begin(output, {"b", "0", "en"});
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(),
                     "b: srt on stdout holds one recording, and a is written already; "
                     "use --output-dir DIR for several");
    }
}

// The error of check() after resolve_formats(), or "".
std::string complaint(OutputOptions options, bool words) {
    options.resolve_formats("text");
    try {
        options.check(words);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

OutputOptions formatted(const std::string& format, const SubtitleLayout& subtitles) {
    OutputOptions options{{format}};
    options.subtitles = subtitles;
    return options;
}

TEST(Output, ChecksItsFormats) {
    EXPECT_EQ(complaint({}, false), "");
    EXPECT_NE(complaint({{"doc"}}, false).find("unknown format 'doc'"), std::string::npos);
    EXPECT_NE(complaint({{"jsn"}}, false).find("did you mean 'json'?"), std::string::npos);
    EXPECT_NE(complaint({{"srt", "vtt"}}, false).find("2 formats need --output-dir"),
              std::string::npos);
    EXPECT_EQ(complaint({{"srt", "srt"}}, false), "");
    EXPECT_EQ(complaint({{"srt", "vtt"}, "d"}, false), "");
    OutputOptions all{{"srt", "all"}, "d"};
    all.resolve_formats("text");
    EXPECT_EQ(all.formats, all_formats());
    OutputOptions more{{"html", "all"}, "d"};
    more.resolve_formats("text");
    EXPECT_EQ(more.formats, transcript_formats());
}

TEST(Output, ChecksTheLayoutOfSubtitles) {
    for (const SubtitleLayout& layout :
         {SubtitleLayout{40}, SubtitleLayout{40, 2}, SubtitleLayout{0, 0, 5},
          SubtitleLayout{20, 0, 5}, SubtitleLayout{0, 0, 0, true}}) {
        EXPECT_EQ(complaint(formatted("vtt", layout), true), "");
        EXPECT_NE(complaint(formatted("vtt", layout), false).find("needs --word-timestamps"),
                  std::string::npos);
        EXPECT_NE(complaint(formatted("tsv", layout), true).find("(got --format tsv)"),
                  std::string::npos);
    }
    EXPECT_EQ(complaint(formatted("ass", {40}), true), "");
    EXPECT_NE(complaint(formatted("ass", {0, 0, 0, true}), true).find("is for srt, vtt"),
              std::string::npos);
    EXPECT_NE(complaint(formatted("srt", {0, 2}), true).find("needs --max-line-width"),
              std::string::npos);
    EXPECT_NE(complaint(formatted("srt", {40, 2, 5}), true).find("has no effect"),
              std::string::npos);
}

TEST(Output, ChecksTextAndNames) {
    OutputOptions options;
    options.text = {true, true};
    EXPECT_EQ(complaint(options, true), "");
    options.directory = "d";
    EXPECT_NE(complaint(options, true).find("text on stdout (got --output-dir)"),
              std::string::npos);
    options.text.confidence = false;
    EXPECT_EQ(complaint(options, true), "");
    options.formats = {"srt"};
    EXPECT_NE(complaint(options, true).find("--times: is for text (got --format srt)"),
              std::string::npos);

    options = {};
    options.overwrite = true;
    EXPECT_NE(complaint(options, true).find("--overwrite: needs --output-dir"), std::string::npos);
    options.directory = "d";
    EXPECT_EQ(complaint(options, true), "");
    for (const char* wrong : {"{title}", "{", "{stem", "", "/", "{folder}/", "..", "a/../{stem}",
                              "{folder}/../{stem}", "{}"}) {
        options.name_template = wrong;
        EXPECT_TRUE(complaint(options, true).starts_with("--output-name: ")) << wrong;
    }
    for (const char* right : {"{n}", "{folder}/{stem}", "a/{name}", "..{stem}..", "/{stem}"}) {
        options.name_template = right;
        EXPECT_EQ(complaint(options, true), "") << right;
    }
    options.directory.clear();
    EXPECT_NE(complaint(options, true).find("--output-name: needs --output-dir"),
              std::string::npos);
}

TEST(OutputNames, FillsInItsFields) {
    const auto named = [](const std::string& name_template, const std::string& source,
                          const std::string& channel = "0") {
        return OutputNames(name_template, {".txt"}).add({source, channel}).path;
    };
    EXPECT_EQ(named("{stem}", "a/b.c.mp3"), "b.c");
    EXPECT_EQ(named("{name}", "a/b.c.mp3"), "b.c.mp3");
    EXPECT_EQ(named("{folder}/{stem}", "a/b/c.mp3"), "a/b/c");
    EXPECT_EQ(named("{folder}/{stem}", "/a//./b/c.mp3"), "a/b/c");
    EXPECT_EQ(named("{folder}/{stem}", "c.mp3"), "c");
    EXPECT_EQ(named("{n}-{stem}-{channel}", "c.mp3", "1"), "1-c-1");
    EXPECT_EQ(named("x/{stem}", "c.mp3", "1"), "x/c.1");
    EXPECT_EQ(named("{stem}", "c.mp3", "../1"), "c..._1");
    EXPECT_EQ(named("{stem}", "a/.."), "recording");
    EXPECT_EQ(named("{folder}/{n}", std::string(300, 'f') + "/x"), std::string(255, 'f') + "/1");
    EXPECT_THROW(named("{folder}/{stem}", "../c.mp3"), Error);
    EXPECT_THROW(named("{folder}/{stem}", "a/../../c.mp3"), Error);
    EXPECT_EQ(named("{stem}", "../c.mp3"), "c");
}

TEST(OutputNames, NoTwoRecordingsShareAFile) {
    OutputNames names("{stem}", {".txt", ".audacity.txt"});
    EXPECT_EQ(names.add({"x/a.wav"}).taken_by, "");
    const OutputNames::Name second = names.add({"y/a.mp3"});
    EXPECT_EQ(second.path, "a-2");
    EXPECT_EQ(second.taken_by, "x/a.wav");
    EXPECT_EQ(names.add({"a-2.wav"}).taken_by, "y/a.mp3");
    // Its text would be the labels of a.wav.
    EXPECT_EQ(names.add({"a.audacity.wav"}).path, "a.audacity-2");
}

TEST(Output, ExistingFilesFailTheirRecordingBeforeItBegins) {
    test::TemporaryDirectory directory;
    OutputOptions options{{"text", "srt"}, directory.path().string()};
    test::write_text(directory.path() / "a.srt", "old");
    std::vector<std::string> warnings;
    {
        TranscriptOutput output(options,
                                [&](const std::string& warning) { warnings.push_back(warning); });
        const std::string failure = output.plan({"x/a.wav"});
        EXPECT_EQ(failure, (directory.path() / "a.srt").string() +
                               " exists; use --overwrite or another --output-dir");
        EXPECT_EQ(output.plan({"y/a.wav"}), "");
        output.begin({"x/a.wav"});
        EXPECT_EQ(output.end("", failure), failure);
        output.begin({"y/a.wav"});
        EXPECT_EQ(output.end("", ""), "");
        // A file that another program has made meanwhile stays, too.
        EXPECT_EQ(output.plan({"b.wav"}), "");
        output.begin({"b.wav"});
        test::write_text(directory.path() / "b.txt", "another's");
        EXPECT_NE(output.end("", "").find("b.txt exists"), std::string::npos);
    }
    EXPECT_EQ(names_in(directory.path()),
              (std::set<std::string>{"a.srt", "a-2.srt", "a-2.txt", "b.txt"}));
    EXPECT_EQ(test::read_text(directory.path() / "a.srt"), "old");
    EXPECT_EQ(test::read_text(directory.path() / "b.txt"), "another's");
    EXPECT_EQ(warnings, std::vector<std::string>{
                            "y/a.wav: written to a-2, because x/a.wav has the same name"});
    options.overwrite = true;
    TranscriptOutput output(options);
    EXPECT_EQ(put(output, "a.wav"), "");
    EXPECT_NE(test::read_text(directory.path() / "a.srt"), "old");
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
    plan_and_begin(output, {"b.wav", "0", "en"});
    fs::create_directory(directory.path() / "out/b-2.json");
    const std::string both = output.end("", "it broke");
    EXPECT_TRUE(both.starts_with("it broke; ")) << both;
    // Nothing is left of what could not be finished.
    fs::remove_all(directory.path() / "out");
    test::write_text(directory.path() / "out", "no folder");
    EXPECT_NE(put(output, "d.wav").find("out: cannot make this folder"), std::string::npos);
    fs::remove(directory.path() / "out");
    EXPECT_EQ(put(output, "e.wav"), "");
    EXPECT_EQ(names_in(directory.path() / "out"), (std::set<std::string>{"e.json", "e.txt"}));
}

}  // namespace
}  // namespace hark::whisper
