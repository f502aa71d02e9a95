// gpt-train as ranks that find one another by --rendezvous, without MPI: the bits of a run under
// mpirun, and of an undisturbed one after a rank was killed.
#include "core/error.h"
#include "support/expect.h"
#include "tools/gpt_train.h"

using namespace hark;
using namespace hark::test;

namespace {

std::string train_command(const fs::path& out, const std::string& steps, const std::string& more) {
    return quoted(arguments_for(out, {"--device", "cpu", "--steps", steps, "--save-every", "10"})) +
           " " + more;
}

// Shell: both ranks, which wait for each other by a file, and the errors of rank 1.
std::string two_ranks(const fs::path& out, const std::string& steps) {
    const std::string ranks =
        train_command(out, steps, "--ranks 2 --rendezvous '" + out.string() + ".meeting' --rank ");
    return ranks + "1 2> '" + out.string() + ".err' & other=$!; " + ranks + "0 & first=$!; ";
}

void expect_same_files(const fs::path& a, const fs::path& b) {
    for (const char* name : {"model.safetensors", "optimizer.safetensors", "training.json"})
        EXPECT_TRUE(read_text(a / name) == read_text(b / name)) << name;
}

}  // namespace

TEST(GptTrainRendezvous, TwoRanksHaveTheBitsOfMpi) {
    if (mpirun(1, 1).empty()) GTEST_SKIP() << "built without MPI";
    const TemporaryDirectory folder;
    const fs::path by_mpi = folder.path() / "mpi", met = folder.path() / "met";
    const ProcessResult mpi = run_shell(mpirun(2, 100) + train_command(by_mpi, "20", ""));
    EXPECT_EQ(mpi.exit_code, 0) << mpi.err;
    const ProcessResult tcp = run_shell(two_ranks(met, "20") + "wait $other && wait $first");
    EXPECT_EQ(tcp.exit_code, 0) << tcp.err << read_text(met.string() + ".err");
    EXPECT_EQ(steps_of(tcp.out), steps_of(mpi.out));
    expect_same_files(by_mpi / "step-00000020", met / "step-00000020");
}

TEST(GptTrainRendezvous, AKilledRankEndsTheRunWhichGoesOnToTheSameBits) {
    const TemporaryDirectory folder;
    const fs::path whole = folder.path() / "whole", out = folder.path() / "run";
    const std::string steps = "120";
    const std::string end = "wait $other && wait $first";
    EXPECT_EQ(run_shell(two_ranks(whole, steps) + end).exit_code, 0);
    const ProcessResult killed =
        run_shell(two_ranks(out, steps) + "until [ -e '" + out.string() +
                  "/step-00000020' ]; do sleep 0.01; done; kill -9 $other; wait $first");
    EXPECT_EQ(killed.exit_code, 1);
    expect_contains(killed.err, "gpt-train: rank 0: rank 1 has ended, and the run cannot continue");
    EXPECT_FALSE(fs::exists(out / "step-00000120"));
    const ProcessResult rest = run_shell(two_ranks(out, steps) + end);
    EXPECT_EQ(rest.exit_code, 0) << rest.err;
    expect_same_files(whole / "step-00000120", out / "step-00000120");
}

// The errors of the meeting itself are in tests/kernels/rendezvous_test.cc.
TEST(GptTrainRendezvous, WrongFlagsAreRefused) {
    const std::string start = "gpt-train --train no.bin --output-dir no --steps 1 --size 124M ";
    expect_fails(run_shell(start + "--rank 1 --ranks 2"), 2,
                 "--rank, --ranks and --token-file need --rendezvous");
    expect_fails(run_shell(start + "--rendezvous meeting --rank 0"), 2,
                 "--rendezvous needs --rank and --ranks, unless mpirun or srun gives them");
    expect_fails(run_shell(start + "--rendezvous meeting --rank 0 --ranks 2 --gpus 2"), 2,
                 "--gpus starts processes here, --rendezvous joins those that were started");
    for (const char* port : {"0", "65536", "99999999999", "http"})
        expect_fails(
            run_shell(start + "--rendezvous tcp://localhost:" + port + " --rank 0 --ranks 2"), 2,
            std::string("--rendezvous: expected a port from 1 to 65535, got 'tcp://localhost:") +
                port + "'");
    const ProcessResult late = run_shell(
        start + "--rendezvous /nowhere/meeting --rank 1 --ranks 2 --rendezvous-timeout 1");
    EXPECT_EQ(late.exit_code, 1);
    expect_contains(late.err,
                    "gpt-train: rank 1: rendezvous: rank 0 was not found within 1 s: "
                    "/nowhere/meeting: ");
}
