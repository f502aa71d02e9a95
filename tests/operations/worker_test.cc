// hark worker and hark parallel, with the real tools and scripts.
#include <gtest/gtest.h>

#include <regex>

#include "support/expect.h"
#include "support/process.h"

namespace hark::test {
namespace {

namespace fs = std::filesystem;

// Random moments at which a run is killed: all of them where HARK_ALL_RECORDINGS is set, as
// tests/sanitize.sh does.
int moments(int usual) { return std::getenv("HARK_ALL_RECORDINGS") == nullptr ? usual : 20; }

// A shell's function: once all shards are done, their merge is that in one.jsonl, and a run begins
// again. Without it later kills would find nothing to do.
const std::string kAnew =
    "start_over() { [ -z \"$(tail -n +2 shards/shards.tsv | while read -r name _; do "
    "[ -e out/$name.done ] || echo $name; done)\" ] || return 0; "
    "hark-shard merge shards out | cmp - one.jsonl || exit 9; rm -rf out; echo start_over >> log; "
    "}\n";

// What `log` of hark workers says is transcribed more than once, if a run has that many recordings.
int transcribed_again(const std::string& log, int recordings) {
    int again = -recordings;
    const std::regex word("hark batch: ([0-9]+) transcribed|start_over");
    for (std::sregex_iterator at(log.begin(), log.end(), word), end; at != end; ++at)
        again += (*at)[1].matched ? std::stoi((*at)[1]) : -recordings;
    return again;
}

// A folder with `in`, of which `shards` is a plan.
class Worker : public testing::Test {
  protected:
    Worker() { fs::create_directories(path() / "in"); }
    const fs::path& path() const { return folder_.path(); }
    void copy(const std::string& sample, const std::string& name) {
        fs::copy_file(samples_dir() / sample, path() / "in" / name);
    }
    // In the folder, programs of its own first on the PATH.
    ProcessResult shell(const std::string& command) {
        return run_shell("cd '" + path().string() + "'; PATH=\"$PWD/tools:$PATH\"; pipelines='" +
                         (source_dir() / "pipelines").string() +
                         "'; worker() { \"$pipelines/worker.sh\" --shards shards \"$@\" -- "
                         "--model demo --threads 1 --language en; }; " +
                         command);
    }
    void tool(const std::string& name, const std::string& text) {
        fs::create_directories(path() / "tools");
        write_text(path() / "tools" / name, "#!/bin/bash\n" + text);
        fs::permissions(path() / "tools" / name, fs::perms::owner_all);
    }
    // Makes the plan.
    void plan(const std::string& input, const std::string& size) {
        const ProcessResult made =
            shell("hark-shard plan " + input + " -o shards --shard-size " + size);
        ASSERT_EQ(made.exit_code, 0) << made.err;
    }
    std::string text(const std::string& name) const { return read_text(path() / name); }

  private:
    TemporaryDirectory folder_;
};

TEST_F(Worker, TranscribesEveryShardOnce) {
    copy("sea.wav", "1.wav");
    copy("key.wav", "2.wav");
    write_text(path() / "in/3.mp3", "this is no sound");
    plan("in", "2");
    const ProcessResult done = shell("worker -o out");
    EXPECT_EQ(done.exit_code, 1) << done.err;
    expect_contains(done.err, "2 of 2 shards to do: 3 recordings, hours not known");
    expect_contains(done.err, "hark worker: shard 00002: 3.mp3: this is no audio");
    expect_contains(done.err, "2 shards done by this worker, 0 of 2 left");
    expect_contains(done.err, "hark worker: 1 recording failed");
    const std::string all = shell("hark-shard merge shards out").out;
    expect_contains(all, R"({"id":"1.wav","source":")" + (path() / "in/1.wav").string());
    expect_contains(all, "small house by the sea.");
    const size_t failed = all.find(R"({"id":"3.mp3")");
    ASSERT_NE(failed, std::string::npos) << all;
    EXPECT_NE(all.find("\"error\":\"this is no audio", failed), std::string::npos) << all;
    const ProcessResult checked = shell("hark-shard check shards out");
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
    expect_contains(checked.out, "transcribed\t2\t2\t");
    expect_contains(checked.out, "failed\t-\t1\t");
    // Nothing is left of the work, and nothing is done again.
    EXPECT_TRUE(fs::is_empty(path() / "out/.claims"));
    EXPECT_TRUE(fs::is_empty(path() / "out/.work"));
    // A worker that was killed when its shard was done left its folder. That of a live worker
    // stays.
    fs::create_directories(path() / "out/.work/00001/fetched");
    ASSERT_EQ(shell("exec 9> out/.work/00001/busy; flock 9; worker -o out").exit_code, 0);
    EXPECT_TRUE(fs::exists(path() / "out/.work/00001/fetched"));
    const ProcessResult nothing = shell("worker -o out");
    EXPECT_EQ(nothing.exit_code, 0) << nothing.err;
    expect_contains(nothing.err, "0 of 2 shards to do");
    EXPECT_TRUE(fs::is_empty(path() / "out/.work"));
    shell("mkdir -p tmp/hark-$(realpath out | cksum | cut -d ' ' -f 1)-00001; touch tmp/other");
    ASSERT_EQ(shell("worker -o out --scratch tmp").exit_code, 0);
    EXPECT_EQ(shell("ls tmp; ls out/.work").out, "other\n");
}

TEST_F(Worker, SaysWhatItCostsAndRunsNothing) {
    write_text(path() / "list.jsonl", R"({"audio_filepath":"/x/a.wav","duration":7200})"
                                      "\n");
    plan("list.jsonl", "1h");
    const ProcessResult dry = shell("worker -o out --dry-run --speed 10 --price 5");
    EXPECT_EQ(dry.exit_code, 0);
    expect_contains(dry.err,
                    "1 of 1 shards to do: 1 recording, 2 h of audio; 0.2 machine hours at 10 x "
                    "real time (--speed), $1.00");
    EXPECT_FALSE(fs::exists(path() / "out"));
    for (const char* wrong : {"-o out --price 0", "-o out --stale x", "-o out in", "--dry-run"})
        EXPECT_EQ(shell(std::string("worker ") + wrong).exit_code, 2) << wrong;
    EXPECT_EQ(shell("\"$pipelines/worker.sh\" --shards shards -o out -- --format srt").exit_code,
              2);
    expect_fails(shell("\"$pipelines/worker.sh\" --shards in -o out"), 1, "has no shards.tsv");
    expect_fails(shell("worker -o $'o\\nut'"), 1,
                 "/o\\nut': expected a path without tab, carriage return and newline");
}

TEST_F(Worker, WorksOnOneJobPerFolder) {
    copy("sea.wav", "1.wav");
    plan("in", "1");
    ASSERT_EQ(shell("worker -o out").exit_code, 0);
    fs::remove(path() / "out/00001.done");
    // Threads change no transcript; a beam may.
    const std::string other =
        "\"$pipelines/worker.sh\" --shards shards -o out -- --model demo --language en ";
    expect_fails(shell(other + "--beam-size 2"), 1, "or of other options");
    EXPECT_EQ(shell(other + "-t 2").exit_code, 0);
    // A killed worker's last process publishes the shard, which another worker has begun meanwhile.
    const ProcessResult meanwhile = shell(
        "mkdir -p out/.work/00001; mv out/00001.done done; flock out/.work/00001/busy bash -c '"
        "for n in {1..600}; do [ ! -e out/.work/00001/out ] || break; sleep 0.05; done; "
        "mv done out/00001.done' & "
        "for n in {1..600}; do flock -n out/.work/00001/busy true || break; sleep 0.05; done; " +
        other + "; wait");
    EXPECT_EQ(meanwhile.exit_code, 0) << meanwhile.err;
    expect_contains(meanwhile.err, "0 shards done by this worker, 0 of 1 left");
    EXPECT_TRUE(fs::is_empty(path() / "out/.work"));
}

TEST_F(Worker, FetchesUrlsPartsAndRemotes) {
    copy("sea.wav", "1.wav");
    const std::string in = (path() / "in").string();
    write_text(path() / "list.jsonl",
               R"({"id":"url","audio_filepath":"file://)" + in +
                   R"(/1.wav"})"
                   "\n"
                   R"({"id":"part","audio_filepath":"in/1.wav","offset":0.5,"duration":1.25})"
                   "\n"
                   R"({"id":"rclone","audio_filepath":"store:a b/1.wav"})"
                   "\n"
                   R"({"id":"bucket","audio_filepath":"s3://bucket/a b/1.wav"})"
                   "\n"
                   R"({"id":"scheme","audio_filepath":"gs://bucket/1.wav"})"
                   "\n"
                   R"({"id":"gone","audio_filepath":"https://host/2.wav"})"
                   "\n"
                   R"({"id":"missing","audio_filepath":"in/none.wav"})"
                   "\n");
    tool("rclone",
         "shift $(($# - 2)); case \"$1\" in 'store:a b/1.wav' | ':s3,env_auth:bucket/a b/1.wav') "
         "cp in/1.wav \"$2\" ;; *) exit 1 ;; esac\n");
    tool("curl",
         "[[ \"${!#}\" != https* ]] || { printf '\\n404'; exit 22; }\n"
         "PATH=\"${PATH#*:}\" exec curl \"$@\"\n");
    plan("list.jsonl", "7");
    const ProcessResult done = shell("worker -o out");
    EXPECT_EQ(done.exit_code, 1) << done.err;
    expect_contains(done.err, "missing: no such file\nhark worker: 1 shard done");
    const std::string lines = text("out/00001.jsonl");
    for (const char* id : {"url", "rclone", "bucket"}) {
        const size_t at = lines.find(std::string("{\"id\":\"") + id);
        ASSERT_NE(at, std::string::npos) << lines;
        EXPECT_NE(lines.find("small house by the sea.", at), std::string::npos) << lines;
    }
    expect_contains(lines, R"({"id":"gone","source":"https://host/2.wav","error":"cannot fetch)");
    expect_contains(lines, R"({"id":"scheme","source":"gs://bucket/1.wav","error":"cannot fetch)");
    expect_contains(lines, R"(/in/none.wav","error":"no such file"})");
    const std::string sums = text("out/00001.done");
    expect_contains(sums, R"("transcribed":4,"failed":3)");
    // sea.wav has 2.89 s: three of it and the part.
    std::smatch hours;
    ASSERT_TRUE(std::regex_search(sums, hours, std::regex("\"hours\":([0-9.e-]+)"))) << sums;
    EXPECT_NEAR(std::stod(hours[1]) * 3600, 3 * 2.89 + 1.25, 0.02);
}

TEST_F(Worker, ReadsRecordingsInTars) {
    copy("sea.wav", "one.wav");
    copy("key.wav", "two.wav");
    write_text(path() / "in/one.txt", "a text");
    ASSERT_EQ(shell("tar -C in -cf x.tar one.wav one.txt two.wav").exit_code, 0);
    ASSERT_EQ(
        shell("hark-shard plan x.tar --input-format webdataset -o shards --shard-size 5").exit_code,
        0);
    const ProcessResult done = shell("worker -o out");
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const std::string lines = text("out/00001.jsonl"), one = R"({"id":"one","source":")";
    expect_contains(lines, one + (path() / "x.tar").string());
    const size_t two = lines.find(R"({"id":"two")");
    ASSERT_NE(two, std::string::npos) << lines;
    EXPECT_LT(lines.find("small house by the sea."), two);
    // The same words as those of the file.
    fs::remove_all(path() / "shards");
    fs::remove(path() / "in/one.txt");
    plan("in", "5");
    ASSERT_EQ(shell("worker -o files").exit_code, 0);
    const auto words = [&](const std::string& result) {
        return shell("jq -r .text " + result + "/00001.jsonl").out;
    };
    EXPECT_EQ(words("out"), words("files"));
    EXPECT_NE(words("out"), "");
    // A tar that has become shorter.
    fs::remove_all(path() / "shards");
    ASSERT_EQ(
        shell("hark-shard plan x.tar --input-format webdataset -o shards --shard-size 5").exit_code,
        0);
    fs::resize_file(path() / "x.tar", 2000);
    EXPECT_EQ(shell("worker -o short").exit_code, 1);
    expect_contains(text("short/00001.jsonl"), R"("error":"cannot read one.wav of this tar"})");
}

TEST_F(Worker, LeavesAShardThatCannotBeFetchedNow) {
    copy("sea.wav", "1.wav");
    write_text(path() / "list.jsonl", R"({"audio_filepath":"https://host/2.wav"})"
                                      "\n"
                                      R"({"audio_filepath":"in/1.wav"})"
                                      "\n"
                                      R"({"audio_filepath":"away/3.wav"})"
                                      "\n");
    tool("curl",
         "[ -e back ] || { printf '\\n503'; exit 22; }\n"
         "while [ \"$1\" != -o ]; do shift; done; cp in/1.wav \"$2\"\n");
    plan("list.jsonl", "1");
    const ProcessResult first = shell("worker -o out");
    EXPECT_EQ(first.exit_code, 75) << first.err;
    expect_contains(first.err, "away/3.wav: its folder is not there");
    expect_contains(first.err, "1 shard done by this worker, 2 of 3 left");
    const ProcessResult second =
        shell("touch back; mkdir away; cp in/1.wav away/3.wav; worker -o out");
    EXPECT_EQ(second.exit_code, 0) << second.err;
    expect_contains(shell("hark-shard check shards out").out, "transcribed\t3\t3\t");
}

TEST_F(Worker, EndsItsDownloadsWithItself) {
    write_text(path() / "list.jsonl", R"({"audio_filepath":"https://host/1.wav"})"
                                      "\n"
                                      R"({"audio_filepath":"https://host/2.wav"})"
                                      "\n");
    tool("curl", "echo $$ >> downloads; exec sleep 60\n");
    plan("list.jsonl", "5");
    const ProcessResult ended = shell(
        ": > downloads; worker -o out &\n"
        "for n in {1..600}; do [ \"$(wc -l < downloads)\" -lt 2 ] || break; sleep 0.05; done\n"
        "kill -TERM $(cut -d ' ' -f 3 out/.claims/00001); wait $!; echo $?\n"
        "for n in {1..100}; do kill -0 $(cat downloads) || exit 0; sleep 0.05; done; echo alive");
    EXPECT_EQ(ended.out, "143\n") << ended.err;
}

// Workers are killed at any moment; what they run ends with them.
TEST_F(Worker, NothingIsLostOrDoneTwiceAfterKills) {
    const std::vector<std::string> samples = {"sea", "key", "road", "hat"};
    for (size_t i = 0; i < 8; ++i) copy(samples[i % 4] + ".wav", std::to_string(10 + i) + ".wav");
    plan("in", "2");
    const ProcessResult one = shell("worker -o one && hark-shard merge shards one > one.jsonl");
    ASSERT_EQ(one.exit_code, 0) << one.err;
    const int kills = moments(4);
    const ProcessResult killed = shell(
        kAnew + "RANDOM=7; for n in {1.." + std::to_string(kills) +
        "}; do start_over; worker -o out 2>> log & first=$!; worker -o out 2>> log & second=$!\n"
        "sleep $((RANDOM % 2)).$((RANDOM % 10)); kill -KILL $(cut -d ' ' -f 3 "
        "out/.claims/.worker.* "
        "2> /dev/null) 2> /dev/null; wait $first $second; rm -f out/.claims/.worker.*; done 2> "
        "/dev/null\n"
        "worker -o out --until-done 2>> log && hark-shard merge shards out");
    EXPECT_EQ(killed.exit_code, 0) << text("log");
    EXPECT_EQ(killed.out, text("one.jsonl"));
    // What a killed worker's batch had transcribed is not done again, except for the last one.
    const std::string log = text("log");
    EXPECT_LE(transcribed_again(log, 8), 2 * kills) << log;
    EXPECT_TRUE(fs::is_empty(path() / "out/.work")) << log;
}

TEST_F(Worker, TakesTheShardOfAWorkerThatIsSilent) {
    copy("sea.wav", "1.wav");
    plan("in", "1");
    fs::create_directories(path() / "out/.claims");
    // Of another machine.
    write_text(path() / "out/.claims/00001", "another pid:[1] 1 1\n");
    const ProcessResult busy = shell("worker -o out");
    EXPECT_EQ(busy.exit_code, 0) << busy.err;
    expect_contains(busy.err, "0 shards done by this worker, 1 of 1 left");
    const ProcessResult taken = shell("worker -o out --until-done --stale 3");
    EXPECT_EQ(taken.exit_code, 0) << taken.err;
    expect_contains(taken.err, "shard 00001: its worker is lost");
    EXPECT_TRUE(fs::exists(path() / "out/00001.done"));
}

TEST_F(Worker, EndsWithWhatItRunsAndGivesItsShardBack) {
    copy("sea.wav", "1.wav");
    plan("in", "1");
    tool("audio-decode",
         "PATH=\"${PATH#*:}\"; [[ \"$*\" == *--help-as* || \"$*\" == */dev/null ]] && exec "
         "audio-decode \"$@\"\ntouch decoding; exec sleep 60\n");
    const ProcessResult ended = shell(
        "worker -o out 2> log & until [ -e decoding ]; do sleep 0.05; done; "
        "kill -TERM $(cut -d ' ' -f 3 out/.claims/00001); wait $!; echo $?; ls -A out/.claims");
    EXPECT_EQ(ended.out, "143\n") << text("log");
}

// ssh is a program that runs the command here, except for the host `broken`.
TEST_F(Worker, ParallelTriesOtherMachines) {
    if (!has_command("parallel")) GTEST_SKIP() << "GNU parallel is not installed";
    for (const char* name : {"1.wav", "2.wav", "3.wav"}) copy("sea.wav", name);
    plan("in", "1");
    tool("ssh",
         "while [[ \"$1\" == -* ]]; do [[ \"$1\" != -[lo] ]] || shift; shift; done\n"
         "[ \"$1\" != broken ] || exit 255\nshift; [ \"$1\" != -- ] || shift; "
         "exec sh -c \"$*\"\n");
    const std::string command =
        "\"$pipelines/parallel.sh\" --shards shards -o out --sshlogin a,broken -- --model demo "
        "--language en -t "
        "1";
    const ProcessResult done = shell("PARALLEL_SSH=ssh " + command);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    expect_contains(done.out, "transcribed\t3\t3\t");
    // A result that is removed is made again, whatever the log of GNU parallel says.
    const ProcessResult again = shell("rm out/00002.done; PARALLEL_SSH=ssh " + command);
    EXPECT_EQ(again.exit_code, 0) << again.err;
    expect_contains(again.err, "1 of 3 shards to do");
    EXPECT_EQ(shell("rm out/00002.done; PARALLEL_SSH=ssh " + command + " --beam-size 2").exit_code,
              1);
}

// Its shard is done, and no other machine tries it.
TEST_F(Worker, ParallelEndsWithOneIfARecordingFailed) {
    if (!has_command("parallel")) GTEST_SKIP() << "GNU parallel is not installed";
    copy("sea.wav", "1.wav");
    write_text(path() / "in/2.mp3", "this is no sound");
    plan("in", "1");
    const ProcessResult done = shell(
        "\"$pipelines/parallel.sh\" --shards shards -o out -- --model demo --language en -t 1");
    EXPECT_EQ(done.exit_code, 1) << done.err;
    expect_contains(done.out, "transcribed\t2\t1\t");
    expect_contains(done.out, "failed\t-\t1\t");
    const std::regex begun("1 of 1 shards to do");
    EXPECT_EQ(std::distance(std::sregex_iterator(done.err.begin(), done.err.end(), begun), {}), 2)
        << done.err;
    EXPECT_EQ(done.err.find("some shards failed"), std::string::npos) << done.err;
}

// The script, GNU parallel and the workers, all at once.
TEST_F(Worker, ParallelContinuesAfterKills) {
    if (!has_command("parallel")) GTEST_SKIP() << "GNU parallel is not installed";
    for (const char* name : {"sea.wav", "key.wav", "road.wav", "hat.wav", "answer.wav"})
        copy(name, name);
    plan("in", "1");
    const ProcessResult one = shell("worker -o one && hark-shard merge shards one > one.jsonl");
    ASSERT_EQ(one.exit_code, 0) << one.err;
    const int kills = moments(1);
    const ProcessResult killed = shell(
        kAnew +
        "run=(\"$pipelines/parallel.sh\" --shards shards -o out --slots 2 -- --model demo "
        "--language en -t 1)\n"
        "RANDOM=3; for n in {1.." +
        std::to_string(kills) +
        "}; do start_over; setsid \"${run[@]}\" > table 2>> log & leader=$!\n"
        "sleep $((RANDOM % 3)).$((RANDOM % 10)); kill -KILL -- -$leader "
        "$(cut -d ' ' -f 3 out/.claims/.worker.* 2> /dev/null); wait $leader; done 2> /dev/null\n"
        "\"${run[@]}\" 2>> log && hark-shard merge shards out > merged");
    EXPECT_EQ(killed.exit_code, 0) << text("log");
    expect_contains(killed.out, "transcribed\t5\t5\t");
    EXPECT_EQ(text("merged"), text("one.jsonl"));
    EXPECT_LE(transcribed_again(text("log"), 5), 2 * kills) << text("log");
}

}  // namespace
}  // namespace hark::test
