// gpt-train as several ranks under mpirun, on the CPU: they equal one process, end together, and go
// on from what they have saved.
#include "core/error.h"
#include "support/expect.h"
#include "tools/gpt_train.h"

using namespace hark;
using namespace hark::test;

namespace {

std::string command(const fs::path& out, const std::string& more) {
    const std::string at = data().string();
    return concat("gpt-train --train '", at, "/train.bin' --val '", at, "/val.bin' --tokenizer '",
                  at,
                  "/tok' --layers 2 --width 24 --heads 2 --sequence-length 32 --learning-rate 3e-3 "
                  "--warmup 5 "
                  "--val-every 10 --threads 1 --device cpu --output-dir '",
                  out.string(), "' ", more);
}

ProcessResult train(int ranks, const fs::path& out, const std::string& more) {
    return run_shell((ranks > 1 ? mpirun(ranks, 300) : "") + command(out, more));
}

// Shell: waits for the line of step $1 in the file $2, or for the end of process $3.
constexpr const char* kWaitForStep =
    "wait_for_step() { until grep -q \"^$1\t\" \"$2\" || ! kill -0 $3 2> /dev/null; do sleep 0.01; "
    "done; }; ";

// Shell: the process of rank $1 that writes to the folder $2.
constexpr const char* kProcessOf =
    "process_of() { for p in /proc/[0-9]*; do tr '\\0' ' ' 2> /dev/null < $p/cmdline | "
    "grep -q \"^gpt-train.*$2 \" && grep -zqx \"OMPI_COMM_WORLD_RANK=$1\" $p/environ && "
    "echo ${p#/proc/}; done; }; ";

// Two ranks, to the one of which `signal` is sent once step 60 has been written.
ProcessResult signalled(const fs::path& folder, const std::string& more, int rank,
                        const std::string& signal) {
    const std::string out = (folder / "run").string(), lines = (folder / "lines").string();
    return run_shell(concat(kWaitForStep, kProcessOf, "touch '", lines, "'; ", mpirun(2, 300),
                            command(out, more), " > '", lines, "' & starter=$!; wait_for_step 1 '",
                            lines, "' $starter; rank=$(process_of ", rank, " '", out,
                            "'); wait_for_step 60 '", lines, "' $starter; kill -", signal,
                            " $rank; wait $starter"));
}

// The numbers of the lines: step, loss, val_loss (0: none), rate, norm.
std::vector<std::vector<double>> logged_numbers(const std::string& out) {
    std::vector<std::vector<double>> lines;
    std::istringstream in(out);
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("step")) continue;
        std::vector<double>& numbers = lines.emplace_back();
        std::istringstream fields(line);
        for (std::string field; numbers.size() < 5 && std::getline(fields, field, '\t');)
            numbers.push_back(field.empty() ? 0 : std::stod(field));
    }
    return lines;
}

// The last steps of `whole` are those of `found`, within the rounding of float32, or `loss`.
void expect_near_end(const ProcessResult& found, const ProcessResult& whole, size_t count,
                     double loss = 2e-5) {
    ASSERT_EQ(found.exit_code, 0) << found.err;
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    const auto ours = logged_numbers(found.out), theirs = logged_numbers(whole.out);
    ASSERT_EQ(ours.size(), count) << found.out;
    ASSERT_GE(theirs.size(), count);
    for (size_t i = 0; i < count; ++i) {
        const auto &a = ours[i], &b = theirs[theirs.size() - count + i];
        ASSERT_EQ(a.size(), 5u);
        EXPECT_EQ(a[0], b[0]);
        EXPECT_NEAR(a[1], b[1], loss) << "loss of step " << a[0];
        EXPECT_NEAR(a[2], b[2], loss) << "validation loss of step " << a[0];
        EXPECT_EQ(a[3], b[3]);
        EXPECT_NEAR(a[4], b[4], 100 * loss) << "norm of step " << a[0];
    }
}

void expect_same_end(const fs::path& a, const fs::path& b, const char* step) {
    for (const char* name : {"model.safetensors", "optimizer.safetensors", "training.json"})
        EXPECT_TRUE(read_text(a / step / name) == read_text(b / step / name)) << name;
}

size_t count_of(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
    return count;
}

}  // namespace

// A question four times, each time with another right answer: a quarter is answered rightly, if
// each is asked once.
TEST(GptTrainRanks, HellaSwagIsShared) {
    const TemporaryDirectory folder;
    const fs::path file = folder.path() / "hellaswag.bin";
    write_text(file, questions());
    for (const int ranks : {2, 3}) {
        const ProcessResult result =
            train(ranks, folder.path() / std::to_string(ranks),
                  concat("--batch-size 2 --steps 20 --hellaswag '", file.string(), "'"));
        EXPECT_EQ(result.exit_code, 0) << result.err;
        EXPECT_EQ(count_of(result.out, "\t0.2500"), 2u) << result.out;
    }
}

// The same 12 sequences a step, whoever computes them.
TEST(GptTrainRanks, TwoAndThreeEqualOne) {
    const TemporaryDirectory folder;
    for (const std::string optimizer : {"adamw", "muon"}) {
        SCOPED_TRACE(optimizer);
        const std::string more =
            "--steps 20 --save-every 10 --mask-documents --optimizer " + optimizer;
        const auto out = [&](const char* name) { return folder.path() / (optimizer + name); };
        const ProcessResult one = train(1, out("1"), more + " --batch-size 12");
        expect_near_end(train(2, out("2"), more + " --batch-size 6"), one, 20);
        expect_near_end(train(3, out("3"), more + " --batch-size 2 --accumulate 2"), one, 20);
        // A checkpoint says nothing of the ranks that have made it.
        for (const char* name : {"2", "3"}) fs::remove_all(out(name) / "step-00000020");
        expect_near_end(train(1, out("2"), more + " --batch-size 12"), one, 10);
        expect_near_end(train(2, out("3"), more + " --batch-size 2 --accumulate 3"), one, 10);
    }
}

// Sums over ranks are in float32, but a parameter's last bit may turn the chance by which it is
// rounded.
TEST(GptTrainRanks, TwoEqualOneInBf16) {
    const TemporaryDirectory folder;
    const std::string more = "--steps 20 --dtype bf16 ";
    const ProcessResult one = train(1, folder.path() / "1", more + "--batch-size 12");
    const ProcessResult two = train(2, folder.path() / "2", more + "--batch-size 6");
    expect_near_end(two, one, 20, 5e-4);
    const ProcessResult again = train(2, folder.path() / "again", more + "--batch-size 6");
    EXPECT_EQ(again.exit_code, 0) << again.err;
    expect_same_end(folder.path() / "2", folder.path() / "again", "step-00000020");
}

// Two ranks, and rows of two in four, each with half of every layer: its losses, norms (which are
// clipped), questions, texts and checkpoints are those of one.
TEST(GptTrainRanks, TensorParallelEqualsOne) {
    const TemporaryDirectory folder;
    const fs::path file = folder.path() / "hellaswag.bin";
    write_text(file, questions());
    const std::string more = concat(
        "--steps 10 --save-every 5 --sample-every 5 "
        "--sample-tokens 8 --hellaswag '",
        file.string(), "' ");
    const std::string two = more + "--batch-size 4 --tensor-parallel 2",
                      four = more + "--batch-size 1 --accumulate 2 --tensor-parallel 2",
                      alone = more + "--batch-size 4";
    const auto out = [&](const char* name) { return folder.path() / name; };
    const std::string exported = " --export-model '" + out("exported").string() + "'";
    const ProcessResult one = train(1, out("1"), alone);
    for (const std::vector<double>& numbers : logged_numbers(one.out))
        EXPECT_GT(numbers[4], 1.05) << "a norm that is not clipped";
    expect_near_end(train(2, out("2"), two + exported), one, 10);
    EXPECT_EQ(read_text(out("exported") / "model.safetensors"),
              read_text(out("2") / "model.safetensors"));
    const ProcessResult rows = train(4, out("4"), four);
    expect_near_end(rows, one, 10);
    EXPECT_EQ(count_of(rows.out, "\t0.2500"), 1u) << rows.out;
    for (const char* name : {"2", "4"}) {
        EXPECT_EQ(read_text(out(name) / "samples.txt"), read_text(out("1") / "samples.txt"));
        fs::create_directories(out("saved"));
        fs::copy(out(name), out("saved") / name,
                 fs::copy_options::recursive | fs::copy_options::copy_symlinks);
        fs::remove_all(out(name) / "step-00000010");
    }
    // A checkpoint says nothing of the grid that has made it; the same one continues to the same
    // bits.
    EXPECT_EQ(train(4, out("4"), four).exit_code, 0);
    expect_same_end(out("saved") / "4", out("4"), "step-00000010");
    for (const char* name : {"1", "4"}) fs::remove_all(out(name) / "step-00000010");
    expect_near_end(train(4, out("2"), four), one, 5);
    expect_near_end(train(1, out("4"), alone), one, 5);
    expect_near_end(train(2, out("1"), two), one, 5);
}

// Each half of a sum is rounded. Tables and norms are the same bits on both halves, else a run that
// continues, which gives the first one's to both, would end otherwise.
TEST(GptTrainRanks, TensorParallelEqualsOneInBf16) {
    const TemporaryDirectory folder;
    const std::string more = "--steps 20 --save-every 10 --dtype bf16 ",
                      two = more + "--batch-size 2 --tensor-parallel 2";
    const fs::path out = folder.path() / "4", whole = folder.path() / "whole";
    const ProcessResult one = train(1, folder.path() / "1", more + "--batch-size 4");
    expect_near_end(train(4, out, two), one, 20, 1e-3);
    fs::copy(out, whole, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::remove_all(out / "step-00000020");
    const ProcessResult rest = train(4, out, two);
    EXPECT_EQ(rest.exit_code, 0) << rest.err;
    expect_same_end(whole, out, "step-00000020");
}

TEST(GptTrainRanks, TensorParallelDividesWhatItCuts) {
    const TemporaryDirectory folder;
    const auto refused = [&](int ranks, const std::string& more, int status,
                             const std::string& part) {
        const ProcessResult result =
            train(ranks, folder.path() / "run", "--steps 20 --tensor-parallel " + more);
        EXPECT_EQ(result.exit_code, status) << result.err;
        expect_contains(result.err, part);
        EXPECT_FALSE(fs::exists(folder.path() / "run"));
    };
    refused(1, "2", 1, "--tensor-parallel: expected a divisor of the 1 process, got 2");
    refused(3, "2", 1, "--tensor-parallel: expected a divisor of the 3 processes, got 2");
    const ProcessResult gpus = run_shell(
        "gpt-train --train no.bin --output-dir no --steps 1 --size 124M --gpus 3 --tensor-parallel "
        "2");
    expect_fails(gpus, 2, "--tensor-parallel: expected a divisor of --gpus 3, got 2");
    refused(4, "4", 1,
            "--tensor-parallel: expected a divisor of the model's 2 heads and of its MLP's 96 "
            "channels, got 4");
    refused(2, "2 --optimizer muon", 2, "--tensor-parallel needs --optimizer adamw");
    const std::string one = command(folder.path() / "run", "--steps 20 --tensor-parallel ");
    const ProcessResult unlike = run_shell(mpirun(1, 300) + one + "2 : -n 1 " + one + "1");
    EXPECT_NE(unlike.exit_code, 0);
    expect_contains(
        unlike.err,
        "the processes differ (rank 0 has --tensor-parallel 2; this one has --tensor-parallel 1)");
}

TEST(GptTrainRanks, GoOnToTheSameBitsAfterOneIsKilled) {
    const TemporaryDirectory folder;
    const std::string more = "--batch-size 4 --steps 240 --save-every 20";
    const fs::path out = folder.path() / "run", whole = folder.path() / "whole";
    const ProcessResult all = train(2, whole, more);
    EXPECT_EQ(all.exit_code, 0) << all.err;
    EXPECT_EQ(all.err, "");
    const ProcessResult killed = signalled(folder.path(), more, 1, "KILL");
    EXPECT_NE(killed.exit_code, 0);
    expect_contains(killed.err, "process rank 1");
    expect_contains(killed.err, "signal 9");
    ASSERT_FALSE(checkpoints_of(out).empty());
    EXPECT_LT(checkpoints_of(out).back(), "step-00000240");
    const ProcessResult rest = train(2, out, more);
    EXPECT_EQ(rest.exit_code, 0) << rest.err;
    expect_same_end(whole, out, "step-00000240");
}

TEST(GptTrainRanks, ASignalToOneSavesAndEndsAll) {
    const TemporaryDirectory folder;
    const std::string more = "--batch-size 4 --steps 100000 --save-every 100000";
    const ProcessResult ended = signalled(folder.path(), more, 1, "TERM");
    EXPECT_NE(ended.exit_code, 0);
    EXPECT_NE(ended.exit_code, 124) << "the ranks have not ended";
    ASSERT_EQ(checkpoints_of(folder.path() / "run").size(), 1u) << ended.err;
    // Step by step up to the last one that was written.
    const auto lines = logged_numbers(read_text(folder.path() / "lines"));
    std::string digits = std::to_string(lines.size());
    EXPECT_EQ(checkpoints_of(folder.path() / "run")[0],
              "step-" + std::string(8 - digits.size(), '0') + digits);
}

TEST(GptTrainRanks, ALossThatIsNoNumberIsSaidOnce) {
    const TemporaryDirectory folder;
    const ProcessResult result = run_shell(
        mpirun(2, 300) +
        concat(
            "gpt-train --train '", data().string(),
            "/train.bin' --vocab-size 257 --layers 1 --width 16 --heads 2 --sequence-length "
            "16 --batch-size 2 --learning-rate 10 --grad-clip 0 --epsilon 1e-12 --weight-decay 10 "
            "--schedule constant --steps 400 --threads 1 --device cpu --output-dir '",
            (folder.path() / "run").string(), "'"));
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_EQ(count_of(result.err, "the loss or the gradients are not finite"), 1u) << result.err;
    EXPECT_EQ(checkpoints_of(folder.path() / "run").size(), 1u);
}

TEST(GptTrainRanks, ErrorsNameTheRank) {
    const TemporaryDirectory folder;
    write_text(folder.path() / "model.safetensors", "weights");
    const ProcessResult taken = train(2, folder.path(), "--batch-size 4 --steps 20");
    EXPECT_NE(taken.exit_code, 0);
    expect_contains(taken.err, "gpt-train: rank 0: ");
    expect_contains(taken.err, "found a model's model.safetensors");
    // Started with another seed than rank 0.
    const std::string one = command(folder.path() / "run", "--steps 20 --seed ");
    const ProcessResult unlike = run_shell(mpirun(1, 300) + one + "1 : -n 1 " + one + "2");
    EXPECT_NE(unlike.exit_code, 0);
    expect_contains(
        unlike.err,
        "gpt-train: rank 1: the processes differ (rank 0 has seed 1; this one has seed 2)");
    // Another file held out.
    const std::string val = command(folder.path() / "run", "--steps 20 --val '");
    const std::string at = data().string();
    const ProcessResult held_out =
        run_shell(mpirun(1, 300) + val + at + "/val.bin' : -n 1 " + val + at + "/train.bin'");
    EXPECT_NE(held_out.exit_code, 0);
    expect_contains(held_out.err, "gpt-train: rank 1: the processes differ (rank 0 has ");
}

TEST(GptTrainRanks, GpusTakeGpusAndNoLauncher) {
    const TemporaryDirectory folder;
    const ProcessResult cpu = train(1, folder.path() / "run", "--steps 20 --gpus 2");
    EXPECT_EQ(cpu.exit_code, 2);
    expect_contains(cpu.err, "--gpus needs --device cuda (got cpu)");
    const ProcessResult both =
        run_shell(mpirun(2, 300) + "gpt-train --train x --output-dir y --steps 1 --gpus 2");
    EXPECT_EQ(both.exit_code, 1);
    expect_contains(both.err, "a launcher has started 2; leave one of them out");
    const ProcessResult same =
        run_shell(mpirun(2, 300) + "gpt-train --train x --output-dir y --steps 1 --device cuda:1");
    EXPECT_EQ(same.exit_code, 2);
    expect_contains(same.err, "expected cuda, got cuda:1");
}
