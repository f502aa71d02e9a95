// Processes that spawn_local_ranks starts: how they end, and what their parent says of it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "core/error.h"
#include "kernels/comm/transport.h"
#include "support/expect.h"
#include "support/ranks.h"

using namespace hark;
using namespace hark::test;

TEST(SpawnedRanks, TheirParentTellsWhetherAllFailAlike) {
    const auto are_alike = [](bool first_fails) {
        try {
            in_ranks(2, [=](std::unique_ptr<Transport> links) {
                require(!first_fails && links->rank() == 0, "expected by the test: a rank fails");
            });
        } catch (const RanksFailed& why) {
            return why.alike;
        }
        ADD_FAILURE() << "no rank has failed";
        return false;
    };
    EXPECT_TRUE(are_alike(true));
    EXPECT_FALSE(are_alike(false));
}

// As a tool that writes to a pipe which is closed.
TEST(SpawnedRanks, AClosedPipeOfTheFirstEndsAllQuietly) {
    EXPECT_EXIT(in_ranks(2,
                         [](std::unique_ptr<Transport> links) {
                             if (links->rank() == 0) std::raise(SIGPIPE);
                             std::byte token{};
                             links->exchange(0, {}, 0, std::span(&token, 1));
                         }),
                testing::KilledBySignal(SIGPIPE), "rank 0 has ended");
}

TEST(SpawnedRanks, ASignalThatEndsAllEndsTheirParent) {
    EXPECT_EXIT(in_ranks(2, [](std::unique_ptr<Transport>) { std::raise(SIGTERM); }),
                testing::KilledBySignal(SIGTERM), "");
}

TEST(SpawnedRanks, TheirParentPassesSigtermOnToTheFirst) {
    const pid_t parent = ::getpid();
    const std::string error = ranks_error_of(2, [parent](std::unique_ptr<Transport> links) {
        if (links->rank() == 1) ::kill(parent, SIGTERM);
        std::this_thread::sleep_for(std::chrono::seconds(links->rank() == 0 ? 100 : 0));
    });
    expect_contains(error, "rank 0 (process ");
    expect_contains(error, "signal 15");
}

TEST(SpawnedRanks, NoneIsAnError) { EXPECT_THROW(spawn_local_ranks(0), Error); }

TEST(LaunchedProcesses, AreWhatTheLauncherSays) {
    EXPECT_EQ(launched_processes(), 1);
    ::setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    EXPECT_EQ(launched_processes(), 4);
    ::setenv("PMI_SIZE", "two", 1);
    EXPECT_THROW(launched_processes(), Error);
    ::unsetenv("PMI_SIZE");
    ::unsetenv("SLURM_STEP_NUM_TASKS");
}
