// Results of shards: made of hark batch's files, checked, and merged in several forms.
#include <gtest/gtest.h>

#include "operations/shards/collect.h"

#include "operations/shards/merged.h"
#include "operations/shards/result.h"
#include "support/error_of.h"
#include "support/expect.h"
#include "support/process.h"

namespace hark::shards {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_contains;
using test::read_text;
using test::write_text;

constexpr const char* kSegment =
    R"({"source":"in/000001.wav","seek":0,"start":0.25,"end":1.5,"text":" Guten  Tag.","tokens":[1],)"
    R"("words":[{"word":" Guten","start":0.25,"end":0.75,"probability":0.5},)"
    R"({"word":" Tag.","start":0.75,"end":1.5,"probability":1.0}],"language":"de"})";

// A plan of two shards with two recordings each, and what hark batch wrote of them.
class Results : public testing::Test {
  protected:
    Results() {
        const auto entries = parse_manifest(
            R"({"audio_filepath":"/w/b.wav","id":"b","duration":1.5,"speaker":"anna"})"
            "\n"
            R"({"audio_filepath":"/w/s.wav","id":"silence","duration":3})"
            "\n"
            R"({"audio_filepath":"/w/a b.wav","offset":10.5,"duration":1.5,"recording_id":"r","id":"a b"})"
            "\n"
            R"({"audio_filepath":"/w/bad.mp3","id":"bad","duration":7.2})"
            "\n",
            "", "list");
        write_plan(shards(), entries, measure(entries), {2, 4});
        plan_ = read_plan(shards());
        for (const char* work : {"1", "2"}) {
            fs::create_directories(root() / work / "out/.hark");
            write_text(root() / work / "out/000001.jsonl", std::string(kSegment) + "\n");
            write_text(root() / work / "job.json", "{\"model\":\"m\",\"options\":[]}\n");
            write_text(root() / work / "unfetched.tsv", "");
        }
        write_text(root() / "1/out/000002.jsonl", "");
        write_text(
            root() / "1/out/.hark/seconds",
            "/x/in/000002.wav\t9\n/x/in/000001.wav\t1.50\n/x/in/000002.wav\t3.00\n/x/in/0000");
        write_text(root() / "2/out/.hark/seconds", "/x/in/000001.wav\t1.50\n");
        write_text(root() / "2/out/failed.tsv",
                   "/x/in/000002.mp3\t/x/in/000002.mp3: is no sound\n");
        fs::create_directories(results());
    }
    fs::path root() const { return folder_.path(); }
    fs::path shards() const { return root() / "shards"; }
    fs::path results() const { return root() / "results"; }
    void collect(int number) {
        collect_shard(shards(), plan_[static_cast<size_t>(number) - 1],
                      root() / std::to_string(number), results(), 2);
    }
    std::string merged(const std::string& format) {
        std::string all;
        merge_results(shards(), plan_, results(), format, [&](auto text) { all += text; });
        return all;
    }
    // The errors of a check; sums_ has its sums.
    std::string check() {
        Console console("check");
        testing::internal::CaptureStderr();
        sums_ = check_results(shards(), plan_, results(), console);
        const std::string said = testing::internal::GetCapturedStderr();
        EXPECT_EQ(console.failed(), sums_.shards != 2);
        return said;
    }

    test::TemporaryDirectory folder_;
    std::vector<PlannedShard> plan_;
    ResultSums sums_;
};

TEST_F(Results, CountEveryRecording) {
    expect_contains(check(), "shard 00001: is missing: no ");
    collect(1);
    collect(2);
    EXPECT_EQ(check(), "");
    EXPECT_EQ(sums_.transcribed, 3);
    EXPECT_EQ(sums_.failed, 1);
    EXPECT_NEAR(sums_.hours, 6.0 / 3600, 2e-6);
    EXPECT_NEAR(sums_.failed_hours, 0.002, 1e-9);
    const ShardDone done = read_done(results() / "00001.done");
    EXPECT_EQ(done.recordings, 2);
    EXPECT_NEAR(done.hours, 4.5 / 3600, 1e-6);
    EXPECT_EQ(done.job, R"({"model":"m","options":[]})");
}

TEST_F(Results, HaveTheIdAndTheSourceOfThePlan) {
    collect(2);
    const std::string text = read_text(results() / "00002.jsonl");
    EXPECT_TRUE(text.starts_with(R"({"id":"a b","source":"/w/a b.wav","seek":0,"start":0.25)"))
        << text;
    expect_contains(text,
                    R"({"id":"bad","source":"/w/bad.mp3","error":"/w/bad.mp3: is no sound"})");
}

TEST_F(Results, AreNotWrittenWithoutARecording) {
    fs::remove(root() / "1/out/000002.jsonl");
    expect_contains(error_of([&] { collect(1); }),
                    "1 recording with neither a transcript nor an error, the first is silence");
    EXPECT_TRUE(fs::is_empty(results()));
    write_text(root() / "1/unfetched.tsv", "/y/in/000002\tcannot fetch: 404\n");
    collect(1);
    EXPECT_EQ(read_done(results() / "00001.done").failed, 1);
}

TEST_F(Results, ThatWereChangedAreNamed) {
    collect(1);
    collect(2);
    const std::string lines = read_text(results() / "00002.jsonl");
    const std::string done = read_text(results() / "00002.done");
    const auto expect_wrong = [&](const std::string& part) {
        expect_contains(check(), part);
        EXPECT_EQ(sums_.shards, 1);
        write_text(results() / "00002.jsonl", lines);
        write_text(results() / "00002.done", done);
        EXPECT_EQ(check(), "");
    };
    write_text(results() / "00002.jsonl", lines.substr(0, lines.size() / 2));
    expect_wrong("00002.jsonl: is missing or was changed");
    fs::remove(results() / "00002.jsonl");
    expect_wrong("00002.jsonl: is missing or was changed");
    write_text(results() / "00002.done", done.substr(0, done.size() / 2));
    expect_wrong("00002.done: expected a JSON object");
    const auto replaced = [&](const std::string& from, const std::string& to) {
        std::string text = done;
        text.replace(text.find(from), from.size(), to);
        write_text(results() / "00002.done", text);
    };
    replaced("\"transcribed\":1", "\"transcribed\":0");
    expect_wrong("0 transcribed and 1 failed recordings, expected 2");
    replaced("\"model\":\"m\"", "\"model\":\"n\"");
    expect_wrong("shard 00002: was made with another model");
    replaced(plan_[1].sha256, plan_[0].sha256);
    expect_wrong("is the result of another plan");
}

// The recordings of a result are those that its shard had then.
TEST_F(Results, OfAShardThatWasChangedAreNamed) {
    collect(1);
    collect(2);
    const fs::path shard = shards() / "00002.jsonl";
    const std::string lines = read_text(shard);
    write_text(shard, lines.substr(0, lines.find('\n') + 1));
    expect_contains(check(), shard.string() + ": was changed after the plan");
    EXPECT_EQ(sums_.shards, 1);
    fs::remove(shard);
    expect_contains(check(), shard.string());
    EXPECT_EQ(sums_.shards, 1);
    write_text(shard, lines);
    EXPECT_EQ(check(), "");
}

TEST_F(Results, HoursThatAreNotThePlansAreAWarning) {
    write_text(root() / "1/out/.hark/seconds", "/x/in/000001.wav\t1.50\n/x/in/000002.wav\t1.00\n");
    collect(1);
    collect(2);
    expect_contains(check(), "shard 00001: 0.001250 h planned, 0.000694 h found");
    EXPECT_EQ(sums_.shards, 2);
}

TEST_F(Results, AreMergedInTheInputsOrder) {
    collect(2);
    collect(1);
    const std::string all = merged("jsonl");
    EXPECT_EQ(all, read_text(results() / "00001.jsonl") + read_text(results() / "00002.jsonl"));
    EXPECT_LT(all.find("\"b\""), all.find("\"a b\""));
}

TEST_F(Results, BecomeTablesOfKaldi) {
    collect(1);
    collect(2);
    EXPECT_EQ(merged("kaldi-text"), "a_b Guten Tag.\nb Guten Tag.\nsilence\n");
    EXPECT_EQ(merged("ctm"),
              "a_b 1 0.250 0.500 Guten 0.500\na_b 1 0.750 0.750 Tag. 1.000\n"
              "b 1 0.250 0.500 Guten 0.500\nb 1 0.750 0.750 Tag. 1.000\n");
    write_text(root() / "1/out/000002.jsonl", R"({"source":"x","text":"y"})"
                                              "\n");
    collect(1);
    expect_contains(error_of([&] { merged("ctm"); }), "silence: a segment has no words");
}

TEST_F(Results, BecomeSupervisionsOfLhotse) {
    collect(1);
    collect(2);
    EXPECT_EQ(merged("lhotse"),
              R"({"id":"b-0","recording_id":"b","start":0.25,"duration":1.25,"channel":0,)"
              R"("text":"Guten Tag.","language":"de","speaker":"anna","alignment":{"word":[)"
              R"(["Guten",0.25,0.5,0.5],["Tag.",0.75,0.75,1.0]]}})"
              "\n"
              R"({"id":"a b-0","recording_id":"r","start":10.75,"duration":1.25,"channel":0,)"
              R"("text":"Guten Tag.","language":"de","alignment":{"word":[)"
              R"(["Guten",10.75,0.5,0.5],["Tag.",11.25,0.75,1.0]]}})"
              "\n");
}

}  // namespace
}  // namespace hark::shards
