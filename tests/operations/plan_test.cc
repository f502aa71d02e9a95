// Lists of recordings, and how they are cut into shards.
#include <gtest/gtest.h>

#include "operations/shards/plan.h"

#include "hub/digest.h"
#include "operations/shards/inputs.h"
#include "support/error_of.h"
#include "support/expect.h"
#include "support/process.h"
#include "text/lines.h"

namespace hark::shards {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_contains;
using test::TemporaryDirectory;
using test::write_text;

std::vector<ManifestEntry> entries_of(const std::string& lines) {
    return parse_manifest(lines, "/data", "list");
}

TEST(Manifest, ARecordingIsNone) {
    const std::string sound = (test::samples_dir() / "key.wav").string();
    EXPECT_EQ(error_of([&] { read_input(sound, ""); }),
              sound +
                  ": not a manifest (got a zero byte, expected lines of JSON); for recordings give "
                  "their folder");
}

// Recordings of some seconds.
std::vector<ManifestEntry> of_lengths(const std::vector<double>& lengths) {
    std::string lines;
    for (size_t i = 0; i < lengths.size(); ++i)
        lines += concat("{\"audio_filepath\":\"", i, ".wav\",\"duration\":", lengths[i], "}\n");
    return entries_of(lines);
}

TEST(Manifest, KeepsAllKeysAndMakesPathsAbsolute) {
    const auto entries = entries_of(
        "{\"audio_filepath\":\"a/../b.wav\",\"text\":\"x\",\"lang\":\"de\",\"duration\":2}\r\n\n"
        "{\"id\":7,\"audio_filepath\":\"/c.wav\",\"offset\":1.5,\"duration\":2.25}\n"
        "{\"audio_filepath\":\"https://host/d.mp3?a=b\",\"offset\":0.0,\"duration\":3}\n"
        "{\"audio_filepath\":\"store:e/f.wav\"}");
    ASSERT_EQ(entries.size(), 4u);
    EXPECT_EQ(entries[0].line,
              "{\"audio_filepath\":\"/data/b.wav\",\"id\":\"a/../b.wav\",\"text\":\"x\","
              "\"lang\":\"de\",\"duration\":2}");
    EXPECT_EQ(entries[1].id, "7");
    EXPECT_EQ(entries[1].offset, 1.5);
    EXPECT_EQ(entries[2].id, "https://host/d.mp3?a=b@0");
    EXPECT_EQ(entries[3].audio_filepath, "store:e/f.wav");
    EXPECT_FALSE(entries[3].duration);
    // A plan of a plan is the same.
    EXPECT_EQ(entries_of(entries[0].line)[0].line, entries[0].line);
}

TEST(Manifest, NamesTheLineThatIsWrong) {
    for (const auto& [line, wrong] : std::vector<std::pair<std::string, std::string>>{
             {"x", "expected a JSON object, found text that is not JSON"},
             {"[1]", "expected a JSON object, found array"},
             {"{}", "named audio_filepath, found none"},
             {"{\"audio_filepath\":[]}", "audio_filepath: expected a string, found array"},
             {"{\"audio_filepath\":\"a\",\"duration\":\"1\"}", "duration: expected seconds"},
             {"{\"audio_filepath\":\"a\",\"duration\":-1}", "expected 0 seconds or more"},
             {"{\"audio_filepath\":\"a\",\"offset\":1}", "needs a duration"},
             {"{\"audio_filepath\":\"a\\nb\"}", "expected no tab, line end"},
             {"{\"audio_filepath\":\"\xFF\"}", "expected UTF-8"}}) {
        const std::string said =
            error_of([&, &line = line] { entries_of("{\"audio_filepath\":\"z\"}\n" + line); });
        expect_contains(said, "list: line 2: ");
        expect_contains(said, wrong);
    }
    expect_contains(error_of([] {
                        entries_of(
                            "{\"audio_filepath\":\"a\",\"id\":\"1\"}\n"
                            "{\"audio_filepath\":\"b\",\"id\":1}");
                    }),
                    "1: two recordings have this id");
}

TEST(Cut, MakesShardsOfTheSameLength) {
    const auto entries = of_lengths({3600, 3600, 3600, 1800, 1800, 7200});
    const SizesKnown known = measure(entries);
    EXPECT_EQ(cut(entries, known, {SizeUnit::hours, 2}), (std::vector<size_t>{2, 5, 6}));
    EXPECT_EQ(cut(entries, known, {SizeUnit::hours, 100}), (std::vector<size_t>{6}));
    EXPECT_EQ(cut(entries, known, {SizeUnit::recordings, 4}), (std::vector<size_t>{3, 6}));
    EXPECT_EQ(cut(of_lengths({0, 0}), known, {SizeUnit::hours, 1}), (std::vector<size_t>{2}));
    // One that is longer than a shard is alone in one.
    EXPECT_EQ(cut(of_lengths({10, 36000, 10}), known, {SizeUnit::hours, 1}),
              (std::vector<size_t>{1, 2, 3}));
}

TEST(Cut, NoShardIsLongerThanItsSizeAndOneRecording) {
    std::vector<double> lengths;
    for (uint32_t i = 0, x = 1; i < 500; ++i)
        lengths.push_back((x = x * 1664525 + 1013904223) >> 20);
    const auto entries = of_lengths(lengths);
    for (const double hours : {0.5, 3.0, 20.0}) {
        size_t begin = 0;
        for (const size_t end : cut(entries, measure(entries), {SizeUnit::hours, hours})) {
            double sum = 0;
            for (; begin < end; ++begin) sum += lengths[begin];
            EXPECT_GT(sum, 0);
            EXPECT_LE(sum, hours * 3600 + 4096);
        }
        EXPECT_EQ(begin, 500u);
    }
}

TEST(Cut, SaysWhichSizeIsNotKnown) {
    const auto entries = entries_of("{\"audio_filepath\":\"https://x/a.wav\"}");
    const SizesKnown known = measure(entries);
    expect_contains(error_of([&] {
                        cut(entries, known, {SizeUnit::hours, 1});
                    }),
                    "1 recording without a duration");
    expect_contains(error_of([&] {
                        cut(entries, known, {SizeUnit::bytes, 1});
                    }),
                    "1 recording without a file here");
    EXPECT_EQ(default_size(known).unit, SizeUnit::recordings);
    EXPECT_EQ(parse_size("1.5GB").amount, 1.5e9);
    for (const char* wrong : {"", "h", "0", "-1h", "1x", "1 h", "infh", "nan"})
        expect_contains(error_of([&] { parse_size(wrong); }),
                        "--shard-size: expected hours, bytes");
}

TEST(Plan, WritesWhatItReads) {
    const TemporaryDirectory folder;
    write_text(folder.path() / "a.wav", "12345");
    const auto entries =
        entries_of(concat("{\"audio_filepath\":\"", (folder.path() / "a.wav").string(),
                          "\",\"duration\":36}\n{\"audio_filepath\":\"b.wav\",\"duration\":36}\n"));
    const fs::path plan_folder = folder.path() / "plan";
    write_plan(plan_folder, entries, measure(entries), {1, 2});
    const auto plan = read_plan(plan_folder);
    ASSERT_EQ(plan.size(), 2u);
    EXPECT_EQ(plan[0].name, "00001");
    EXPECT_EQ(plan[0].recordings, 1);
    EXPECT_DOUBLE_EQ(*plan[0].hours, 0.01);
    EXPECT_EQ(plan[0].bytes, 5);
    EXPECT_FALSE(plan[1].bytes);
    EXPECT_EQ(plan[1].sha256, models::sha256_of(plan_folder / "00002.jsonl"));
    EXPECT_DOUBLE_EQ(*hours_of(plan), 0.02);
    EXPECT_EQ(read_shard(plan_folder, plan[1])[0].line, entries[1].line);
    expect_contains(error_of([&] { write_plan(plan_folder, entries, measure(entries), {2}); }),
                    "a plan exists there");
    write_text(plan_folder / "00002.jsonl", entries[0].line);
    expect_contains(error_of([&] { read_shard(plan_folder, plan[1]); }), "was changed");
    write_text(plan_folder / "shards.tsv",
               "name\trecordings\thours\tbytes\tsha256\n../x\t1\t-\t-\tx\n");
    expect_contains(error_of([&] { read_plan(plan_folder); }), "line 2: expected the name");
}

TEST(Inputs, AFolderHasTheRecordingsThatTheScriptsFind) {
    const TemporaryDirectory folder;
    const std::string script = test::read_text(test::source_dir() / "pipelines/recordings.sh");
    const size_t begin = script.find("(wav|"), end = script.find(')', begin);
    ASSERT_NE(begin, std::string::npos);
    std::string endings = script.substr(begin + 1, end - begin - 1), ending;
    int count = 0;
    fs::create_directories(folder.path() / "b");
    for (const char c : endings + "|") {
        if (c != '|') {
            ending += c;
            continue;
        }
        write_text(folder.path() / (++count % 2 ? "b/x." + ending : "y." + ending), "");
        ending.clear();
    }
    write_text(folder.path() / "Z.WAV", "");
    write_text(folder.path() / "notes.txt", "");
    fs::create_directories(folder.path() / "b/.hark-batch");
    write_text(folder.path() / "b/.hark-batch/part.wav", "");
    fs::create_symlink("gone.wav", folder.path() / "Link.wav");
    const auto entries = read_folder(folder.path());
    EXPECT_EQ(static_cast<int>(entries.size()), count + 2);
    EXPECT_EQ(entries[0].id, "Link.wav");
    EXPECT_EQ(entries[1].id, "Z.WAV");
    EXPECT_EQ(entries[2].audio_filepath, (folder.path() / entries[2].id).string());
    write_text(folder.path() / "caf\xe9.wav", "");
    expect_contains(error_of([&] { read_folder(folder.path()); }),
                    "expected an id and a path in UTF-8; rename it");
}

TEST(Inputs, ReadsKaldisFolders) {
    const TemporaryDirectory folder;
    write_text(folder.path() / "wav.scp", "r1 /w/1.wav\nr2 /w/2.flac\n");
    EXPECT_EQ(read_kaldi(folder.path())[1].line, R"({"audio_filepath":"/w/2.flac","id":"r2"})");
    write_text(folder.path() / "segments", "u1 r2 1.5 3\nu2 r1 0 2\n");
    write_text(folder.path() / "text", "u1 GUTEN TAG\n");
    write_text(folder.path() / "utt2spk", "u1 anna\nu2 ben\n");
    const auto entries = read_kaldi(folder.path());
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].line,
              R"({"audio_filepath":"/w/2.flac","id":"u1","offset":1.5,"duration":1.5,)"
              R"("recording_id":"r2","text":"GUTEN TAG","speaker":"anna"})");
    for (const auto& [segments, wrong] : std::vector<std::pair<std::string, std::string>>{
             {"u1 r3 0 1\n", "wav.scp has no recording 'r3'"},
             {"u1 r1 0\n", "expected a recording, a start and an end"},
             {"u1 r1 2 1\n", "duration: expected 0 seconds or more"},
             {"u1 r1 x 1\n", "expected seconds, found 'x'"},
             // A line of JSON could not name it.
             {"u\xae r1 0 1\n", "segments: line 1: expected UTF-8"}}) {
        write_text(folder.path() / "segments", segments);
        expect_contains(error_of([&] { read_kaldi(folder.path()); }), wrong);
    }
    write_text(folder.path() / "wav.scp", "r1 sox x.wav -t wav - |\n");
    expect_contains(error_of([&] { read_kaldi(folder.path()); }), "found the command");
}

// Tars of each kind that GNU tar writes; the names are longer than a header's field.
TEST(Inputs, ReadsWebDatasetsTars) {
    const TemporaryDirectory folder;
    const std::string in = (folder.path() / "in").string(),
                      deep = std::string(60, 'd') + "/" + std::string(60, 'e');
    fs::create_directories(in + "/" + deep);
    write_text(in + "/" + deep + "/a.1.flac", "sound of a");
    write_text(in + "/" + deep + "/a.json",
               R"({"text":"one","duration":2.5,"language":"en","speaker":"s","other":[1]})");
    write_text(in + "/b.cls", "3");
    write_text(in + "/b.mp3", std::string(700, 'b'));
    write_text(in + "/b.txt", "zwei\n");
    const fs::path archive = folder.path() / "x.tar";
    for (const char* format : {"gnu", "ustar", "pax"}) {
        SCOPED_TRACE(format);
        const auto made = test::run_shell("cd '" + in + "' && tar --format=" + format +
                                          " --sort=name -cf ../x.tar " + deep + " b.*");
        ASSERT_EQ(made.exit_code, 0) << made.err;
        const auto entries = read_input(archive.string(), "webdataset");
        ASSERT_EQ(entries.size(), 2u);
        const std::string bytes = test::read_text(archive);
        const auto content = [&](const ManifestEntry& entry) {
            const auto line = nlohmann::json::parse(entry.line);
            return bytes.substr(line["member_offset"], line["member_bytes"]);
        };
        EXPECT_EQ(content(entries[0]), "sound of a");
        EXPECT_EQ(content(entries[1]), std::string(700, 'b'));
        EXPECT_EQ(entries[0].id, deep + "/a");
        EXPECT_EQ(entries[0].audio_filepath, archive.string());
        EXPECT_EQ(entries[0].duration, 2.5);
        expect_contains(entries[0].line,
                        R"("text":"one","duration":2.5,"speaker":"s","lang":"en")");
        EXPECT_EQ(entries[1].member_bytes, 700);
        expect_contains(entries[1].line, R"("member":"b.mp3")");
        expect_contains(entries[1].line, R"("text":"zwei")");
        EXPECT_EQ(measure(entries).bytes[1], 700);
        write_text(folder.path() / "cut.tar", bytes.substr(0, bytes.rfind("bbb") - 100));
        expect_contains(error_of([&] { read_webdataset(folder.path() / "cut.tar"); }),
                        "a member is cut off");
    }
    const auto wrong = [&](const std::string& command, const std::string& part) {
        EXPECT_EQ(test::run_shell("cd '" + in + "' && " + command).exit_code, 0);
        expect_contains(error_of([&] { read_webdataset(archive); }), part);
    };
    wrong("tar -czf ../x.tar b.mp3", "expected a tar, which is not compressed");
    wrong("tar -cf ../x.tar b.txt b.cls", "x.tar: b: this sample has no recording");
    wrong("cp b.mp3 b.wav && tar -cf ../x.tar b.mp3 b.wav", "b.wav: a second recording");
    wrong("tar -cf ../x.tar --files-from /dev/null", "found no samples");
    wrong("echo no > b.json && tar -cf ../x.tar b.mp3 b.json", "b.json: expected a JSON object");
}

TEST(Inputs, ReadsLhotsesRecordingsAndCuts) {
    const std::string recording =
        R"({"id":"r","sources":[{"type":"file","channels":[0],"source":"w/1.wav"}],)"
        R"("sampling_rate":16000,"num_samples":32000,"duration":2.0})";
    const std::string cut = R"({"id":"c","start":0.5,"duration":1.0,"channel":0,"supervisions":[)"
                            R"({"id":"s","text":"hi","speaker":"anna","language":"en"}],)"
                            R"("recording":)" +
                            recording + ",\"type\":\"MonoCut\"}";
    const auto entries = parse_lhotse(recording + "\n" + cut + "\n", "/data", "list");
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].line, R"({"audio_filepath":"/data/w/1.wav","id":"r","duration":2.0})");
    EXPECT_EQ(entries[1].line,
              R"({"audio_filepath":"/data/w/1.wav","id":"c","duration":1.0,"recording_id":"r",)"
              R"("offset":0.5,"text":"hi","speaker":"anna","lang":"en"})");
    for (const auto& [line, wrong] : std::vector<std::pair<std::string, std::string>>{
             {R"({"id":"c","type":"MixedCut"})", "line 1: expected a cut with a recording"},
             {R"({"id":"r","sources":[{"type":"command","source":"x"}]})", "found 'command'"},
             {R"({"id":"r","sources":[{"type":"file","channels":[0,1],"source":"x"}]})",
              "expected channel 0 alone"},
             {R"({"id":"r","sources":[]})", "expected a recording with one source"}})
        expect_contains(error_of([&, &line = line] { parse_lhotse(line, "", "list"); }), wrong);
}

}  // namespace
}  // namespace hark::shards
