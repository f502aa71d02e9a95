// hark slurm on a Slurm that only keeps a list of jobs; tests/cluster.sh has a real one.
#include <gtest/gtest.h>

#include <sstream>

#include "support/expect.h"
#include "support/process.h"

namespace hark::test {
namespace {

namespace fs = std::filesystem;

// A line of `jobs` per job: number, name, comment, dependency. A job is submitted by one write; the
// answer comes later.
constexpr const char* kSbatch = R"(#!/bin/bash
name=- comment=- dependency=-
for option; do
    case "$option" in
        --job-name=*) name="${option#*=}" ;;
        --comment=*) comment="${option#*=}" ;;
        --dependency=*) dependency="${option#*=}" ;;
    esac
done
printf '%s\n' "$name $*" >> submitted
sleep 0.1
exec 9>> jobs.lock
flock 9
number=$((101 + $(wc -l < jobs)))
echo "$number $name $comment $dependency" >> jobs
sleep 0.1
echo "$number"
)";
constexpr const char* kSqueue = R"(#!/bin/bash
[ ! -e down ] || exit 1
for option; do [[ "$option" != --name=* ]] || name="${option#*=}"; done
awk -v name="$name" '$2 == name { print $1, $3 }' jobs
)";

class Slurm : public testing::Test {
  protected:
    Slurm() {
        fs::create_directories(path() / "tools");
        for (const auto& [name, text] : {std::pair{"sbatch", kSbatch}, {"squeue", kSqueue}}) {
            write_text(path() / "tools" / name, text);
            fs::permissions(path() / "tools" / name, fs::perms::owner_all);
        }
        write_text(path() / "jobs", "");
        write_text(path() / "list", "{\"audio_filepath\":\"/x/a.wav\",\"duration\":60}\n");
        EXPECT_EQ(shell("hark-shard plan list -o shards").exit_code, 0);
    }
    const fs::path& path() const { return folder_.path(); }
    // In the folder, with `slurm` for the command.
    ProcessResult shell(const std::string& command) {
        return run_shell("cd '" + path().string() + "'; PATH=\"$PWD/tools:$PATH\"; slurm=('" +
                         (source_dir() / "pipelines/slurm.sh").string() +
                         "' --shards shards -o out -- --model demo)\n" + command);
    }
    std::string jobs() const { return read_text(path() / "jobs"); }

  private:
    TemporaryDirectory folder_;
};

TEST_F(Slurm, SubmitsTheArrayAndItsMergeOnce) {
    const ProcessResult first = shell("\"${slurm[@]}\"");
    EXPECT_EQ(first.exit_code, 0) << first.err;
    EXPECT_EQ(first.out, "101 102\n");
    const std::string submitted = jobs();
    expect_contains(submitted, " 101 afterany:101\n");
    const ProcessResult again = shell("\"${slurm[@]}\"");
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(again.out, "101 102\n");
    expect_contains(again.err, "array job 101 is at work here already");
    EXPECT_EQ(jobs(), submitted);
    // As a kill between the two leaves it.
    write_text(path() / "jobs", submitted.substr(0, submitted.find('\n') + 1));
    EXPECT_EQ(shell("\"${slurm[@]}\"").out, "101 102\n");
    EXPECT_EQ(jobs(), submitted);
    // The merge job of an earlier array job is not this one's.
    EXPECT_EQ(shell("sed -i 's/ 101 afterany:101/ 99 -/' jobs; \"${slurm[@]}\"").out, "101 103\n");
    // Another folder has jobs of its own.
    EXPECT_EQ(shell("slurm[4]=other; \"${slurm[@]}\"").out, "104 105\n");
}

TEST_F(Slurm, MergesWhatIsDone) {
    const ProcessResult merge = shell("mkdir out; touch out/00001.done; \"${slurm[@]}\"");
    EXPECT_EQ(merge.exit_code, 0) << merge.err;
    EXPECT_EQ(merge.out, "- 101\n");
    expect_contains(jobs(), "-merge none -\n");
    EXPECT_EQ(shell("\"${slurm[@]}\"").out, "- 101\n");
    const ProcessResult nothing = shell(": > jobs; touch out/merged.jsonl; \"${slurm[@]}\"");
    EXPECT_EQ(nothing.out, "");
    expect_contains(nothing.err, "nothing is left");
    EXPECT_EQ(jobs(), "");
}

TEST_F(Slurm, SubmitsNothingIfItCannotSeeWhatIsThere) {
    expect_fails(shell("touch down; \"${slurm[@]}\""), 1, "squeue does not answer");
    EXPECT_EQ(jobs(), "");
    expect_fails(shell("\"${slurm[@]:0:5}\" --sbatch --job-name=x"), 2, "by their names");
}

TEST_F(Slurm, TheMergeJobHasTheOptionsOfWhoPaysAndWhere) {
    const ProcessResult run = shell(
        "\"${slurm[@]:0:5}\" --sbatch --gres=gpu:1 --sbatch --partition=gpus "
        "--sbatch=--account=speech --sbatch --exclusive --merge-sbatch --partition=small");
    EXPECT_EQ(run.exit_code, 0) << run.err;
    std::istringstream lines(read_text(path() / "submitted"));
    std::string array, merge;
    std::getline(lines, array);
    std::getline(lines, merge);
    expect_contains(array, " --gres=gpu:1 --partition=gpus --account=speech --exclusive /");
    // sbatch takes the last of an option.
    expect_contains(merge, ".log --partition=gpus --account=speech --partition=small /");
    expect_fails(shell("\"${slurm[@]:0:5}\" --merge-sbatch --dependency=singleton"), 2,
                 "--merge-sbatch: --dependency=singleton: hark sets it");
    expect_fails(shell("\"${slurm[@]:0:5}\" --merge-sbatch -p"), 2, "expected an option such as");
}

// By turns the script alone is killed, whose sbatch may still submit, and all that it runs.
TEST_F(Slurm, KillsLoseNothingAndSubmitNothingTwice) {
    const int kills = std::getenv("HARK_ALL_RECORDINGS") == nullptr ? 6 : 20;
    const ProcessResult killed = shell(
        "now() { echo $((${EPOCHREALTIME/./} / 1000)); }; begun=$(now); \"${slurm[@]}\" > /dev/null\n"
        "took=$(($(now) - begun)); RANDOM=7\n"
        "for n in {1.." +
        std::to_string(kills) +
        "}; do rm -rf out; : > jobs\n"
        "setsid \"${slurm[@]}\" > /dev/null & leader=$!\n"
        "printf -v moment %04d $((RANDOM * took / 32768)); sleep ${moment:0:-3}.${moment: -3}\n"
        "kill -KILL $([ $((n % 2)) = 0 ] || echo -- -)$leader; wait $leader\n"
        "\"${slurm[@]}\"; cut -d ' ' -f 1,3,4 jobs; done");
    EXPECT_EQ(killed.exit_code, 0) << killed.err;
    std::string expected;
    for (int i = 0; i < kills; ++i)
        expected += "101 102\n101 - -\n102 101 afterany:101\n";
    EXPECT_EQ(killed.out, expected) << killed.err;
}

}  // namespace
}  // namespace hark::test
