// What whisper-transcribe writes, as others read it: subtitles by ffprobe, objects by what
// docs/formats.md says of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "core/json/json.h"
#include "support/process.h"

namespace hark::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string mel_of(const std::string& arguments) {
    return run_shell("cd '" + samples_dir().string() + "' && audio-decode " + arguments + " | mel")
        .out;
}

void transcribe_into(const fs::path& folder, const std::string& mel, const std::string& formats,
                     const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {"--model",
                                          "demo",
                                          "--threads",
                                          "1",
                                          "--format",
                                          formats,
                                          "--output-dir",
                                          folder.string(),
                                          "--fallback-temperatures",
                                          "none"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProcessResult result = run_tool("whisper-transcribe", arguments, mel);
    ASSERT_EQ(result.exit_code, 0) << result.err;
}

size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
    return found;
}

// Of the WAV files those that whisper.transcribe does not compare with the reference.
TEST(Pipeline, EveryContainerIsTranscribed) {
    const DetectedLanguages by_themselves;
    // File and text of samples/transcripts.tsv; some voices are hard for the demo model.
    const std::set<std::string> hard = {"jardin.mp3", "telephone.wav"};
    const std::set<std::string> wavs = {"noise.wav", "sea.wav", "silence.wav", "telephone.wav"};
    std::istringstream table(read_text(samples_dir() / "transcripts.tsv"));
    std::map<std::string, std::string> texts;
    std::string line, names;
    std::getline(table, line);
    while (std::getline(table, line)) {
        std::istringstream row(line);
        std::string file, language, voice, text;
        std::getline(row, file, '\t');
        std::getline(row, language, '\t');
        std::getline(row, voice, '\t');
        std::getline(row, text, '\t');
        const size_t speakers = text.find(" | ");  // one text a channel
        if (speakers != std::string::npos) text.erase(speakers, 2);
        if (file.ends_with(".wav") && wavs.count(file) == 0) continue;
        texts[file] = text;
        names += " " + file;
    }
    ASSERT_EQ(texts.size(), 14u);
    const ProcessResult result = run_tool("whisper-transcribe",
                                          {"--model", "demo", "--threads", "1", "--format", "json",
                                           "--fallback-temperatures", "none"},
                                          mel_of(names));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    std::map<std::string, std::string> own;
    std::istringstream objects(result.out);
    while (objects >> std::ws && objects.good()) {
        json object;
        objects >> object;
        own[object["source"]] = object["text"];
    }
    ASSERT_EQ(own.size(), texts.size());
    for (const auto& [file, text] : texts) {
        if (hard.count(file)) continue;
        const std::string& ours = own[file];
        EXPECT_EQ(ours.empty() ? "" : ours.substr(1), text) << file;
    }
}

TEST(TranscriptFormats, FfprobeReadsEverySubtitle) {
    if (!has_command("ffprobe")) GTEST_SKIP() << "ffprobe is not installed";
    const std::string mel = mel_of("story.mp3 silence.wav");
    const std::vector<std::vector<std::string>> runs = {
        {},
        {"--word-timestamps"},
        {"--word-timestamps", "--max-line-width", "20", "--max-line-count", "2"},
        {"--word-timestamps", "--max-line-width", "16", "--highlight-words"},
        {"--word-timestamps", "--max-words-per-line", "1"},
    };
    struct Subtitle {
        std::string ending, demuxer, codec, mark;  // the mark comes once per cue
    };
    const std::vector<Subtitle> kinds = {{".srt", "srt", "subrip", " --> "},
                                         {".vtt", "webvtt", "webvtt", " --> "},
                                         {".ass", "ass", "ass", "\nDialogue: "},
                                         {".lrc", "lrc", "text", "]"}};
    std::set<size_t> numbers;
    for (const auto& options : runs) {
        TemporaryDirectory directory;
        transcribe_into(directory.path(), mel, "srt,vtt,ass,lrc", options);
        for (const char* name : {"story", "silence"})
            for (const Subtitle& kind : kinds) {
                const fs::path path = directory.path() / (name + kind.ending);
                const size_t cues = count(read_text(path), kind.mark);
                EXPECT_EQ(cues == 0, name == std::string("silence")) << path;
                numbers.insert(cues);
                // The format is named, since an empty SubRip file does not say what it is.
                const ProcessResult probe =
                    run_shell("ffprobe -v error -f " + kind.demuxer +
                              " -count_packets -show_entries stream=codec_name,nb_read_packets -of "
                              "default=noprint_wrappers=1 '" +
                              path.string() + "'");
                EXPECT_EQ(probe.err, "") << path;
                EXPECT_EQ(probe.out, "codec_name=" + kind.codec + "\nnb_read_packets=" +
                                         (cues == 0 ? "N/A" : std::to_string(cues)) + "\n")
                    << path;
            }
    }
    EXPECT_GE(numbers.size(), 5u);  // the layouts differ
}

struct Key {
    std::string type;
    bool always = false;
};
using Keys = std::map<std::string, Key>;

// The tables of a section of docs/formats.md whose first column is `key`.
std::vector<Keys> documented(const std::string& heading) {
    std::istringstream lines(read_text(source_dir() / "docs/formats.md"));
    std::vector<Keys> tables;
    bool inside = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("#")) inside = line == heading;
        if (!inside) continue;
        if (line.starts_with("| key |")) tables.emplace_back();
        if (!line.starts_with("| `") || tables.empty()) continue;
        std::istringstream row(line.substr(2));
        std::string names, type, present;
        std::getline(row, names, '|');
        std::getline(row, type, '|');
        std::getline(row, present, '|');
        std::erase(names, ' ');
        std::erase(type, ' ');
        std::istringstream each(names);
        for (std::string name; std::getline(each, name, ',');)
            tables.back()[name.substr(1, name.size() - 2)] = {type, present == " always "};
    }
    return tables;
}

bool is_of(const json& value, const std::string& type) {
    const auto all = [&](auto is) {
        return value.is_array() && std::all_of(value.begin(), value.end(), is);
    };
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "integers") return all([](const json& one) { return one.is_number_integer(); });
    return type == "objects" && all([](const json& one) { return one.is_object(); });
}

// What is found of a kind of objects, next to what is said of it.
struct Kind {
    Keys keys;
    std::set<std::string> seen;

    void check(const json& object) {
        for (const auto& [name, value] : object.items()) {
            ASSERT_TRUE(keys.contains(name)) << "not documented: " << name << " in " << object;
            EXPECT_TRUE(is_of(value, keys[name].type)) << name << ": " << value;
            seen.insert(name);
        }
        for (const auto& [name, key] : keys)
            EXPECT_TRUE(!key.always || object.contains(name)) << name << " is not in " << object;
    }
    // Whether everything that is documented was written at least once.
    void check_all_seen() const {
        for (const auto& [name, key] : keys) EXPECT_TRUE(seen.contains(name)) << name;
    }
};

std::vector<json> objects_of(const std::string& text) {
    std::vector<json> objects;
    std::istringstream in(text);
    while (in >> std::ws && in.good()) in >> objects.emplace_back();
    return objects;
}

TEST(TranscriptFormats, AllOfThemAreWritten) {
    const TemporaryDirectory directory;
    transcribe_into(directory.path(), mel_of("sea.wav"), "all", {});
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory.path())) {
        names.insert(entry.path().filename().string());
        EXPECT_NE(read_text(entry.path()).find("house by the sea"), std::string::npos) << entry;
    }
    EXPECT_EQ(names, (std::set<std::string>{"sea.ass", "sea.audacity.txt", "sea.csv", "sea.json",
                                            "sea.jsonl", "sea.lrc", "sea.md", "sea.srt", "sea.tsv",
                                            "sea.txt", "sea.vtt"}));
    // The scripts know the same formats.
    const ProcessResult listed =
        run_shell("cd '" + (source_dir() / "pipelines").string() +
                  "'; . ./recordings.sh; . ./flags.sh; learn_flags whisper-transcribe; set_endings "
                  "all; for ending in \"${endings[@]}\"; do echo sea.$ending; done | sort");
    std::string expected;
    for (const std::string& name : names) expected += name + "\n";
    EXPECT_EQ(listed.out, expected) << listed.err;
}

// The object that the page of a recording holds.
json object_in(const std::string& page) {
    const std::string begin = "<script type=\"application/json\" id=\"transcript\">";
    const size_t from = page.find(begin) + begin.size();
    return json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(TranscriptFormats, HtmlAloneHasWordsWithTimes) {
    const std::string mel = mel_of("sea.wav");
    const std::vector<std::string> demo = {"--model", "demo", "--threads", "1", "--format"};
    const auto written = [&](std::vector<std::string> options) {
        options.insert(options.begin(), demo.begin(), demo.end());
        const ProcessResult result = run_tool("whisper-transcribe", options, mel);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return result.out;
    };
    EXPECT_EQ(object_in(written({"html"})), json::parse(written({"json", "--word-timestamps"})));

    const TemporaryDirectory directory;
    transcribe_into(directory.path(), mel, "html,json,srt", {});
    EXPECT_EQ(read_text(directory.path() / "sea.json"), written({"json"}));
    EXPECT_EQ(read_text(directory.path() / "sea.srt"), written({"srt"}));
    EXPECT_EQ(object_in(read_text(directory.path() / "sea.html")), json::parse(written({"json"})));
}

TEST(TranscriptFormats, ObjectsHaveTheKeysThatAreDocumented) {
    const std::vector<Keys> lines = documented("### jsonl"), whole = documented("### json");
    ASSERT_EQ(lines.size(), 3u);
    ASSERT_EQ(whole.size(), 1u);
    Kind segment{lines[0], {}}, word{lines[1], {}}, broken{lines[2], {}}, recording{whole[0], {}};
    Kind inner{lines[0], {}};
    for (const char* name : {"source", "channel", "language"}) inner.keys.erase(name);
    inner.keys["id"] = {"integer", true};

    // Two channels, silence, and a file that is no recording.
    const std::string mel =
        run_shell("cd '" + samples_dir().string() +
                  "' && audio-decode --split-channels two_speakers.flac silence.wav README.md"
                  " 2>/dev/null | mel 2>/dev/null")
            .out;
    for (const bool words : {false, true})
        for (const char* format : {"json", "jsonl"}) {
            std::vector<std::string> arguments = {
                "--model", "demo", "--threads", "1", "--format", format, "--fallback-temperatures",
                "none"};
            if (words) arguments.push_back("--word-timestamps");
            for (const json& object :
                 objects_of(run_tool("whisper-transcribe", arguments, mel).out)) {
                if (format == std::string("json")) {
                    recording.check(object);
                    for (const json& one : object["segments"]) inner.check(one);
                    continue;
                }
                const bool segmented = object.contains("text");
                (segmented ? segment : broken).check(object);
                if (!segmented) continue;
                EXPECT_EQ(object.contains("words"), words);
                if (words)
                    for (const json& one : object["words"]) word.check(one);
            }
        }
    for (const Kind* kind : {&segment, &word, &recording, &inner}) kind->check_all_seen();
    EXPECT_EQ(broken.seen, (std::set<std::string>{"source", "error"}));
}

}  // namespace
}  // namespace hark::test
