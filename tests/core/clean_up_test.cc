// Files that are not whole are removed whoever else waits for the signal that ends the process.
#include "core/clean_up.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>

#include "core/cli/ending_signal.h"
#include "core/cli/progress.h"
#include "core/files/files.h"
#include "support/process.h"

namespace hark {
namespace {

class CleanUpDeathTest : public testing::Test {
  protected:
    // What a process does that SIGINT ends; no file may be left.
    void expect_nothing_left(const std::function<void()>& action) {
        EXPECT_EXIT(action(), testing::KilledBySignal(SIGINT), "");
        EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
    }
    std::filesystem::path file() const { return directory_.path() / "file"; }

  private:
    test::TemporaryDirectory directory_;
};

// stderr becomes a new terminal.
void open_terminal() {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_TRUE(master >= 0 && ::grantpt(master) == 0 && ::unlockpt(master) == 0);
    ASSERT_GE(::dup2(::open(::ptsname(master), O_RDWR | O_NOCTTY), STDERR_FILENO), 0);
    ::setenv("TERM", "xterm", 1);
}

TEST_F(CleanUpDeathTest, AFileAfterOneWithProgress) {
    expect_nothing_left([&] {
        open_terminal();
        Console console("test");
        console.progress = "always";
        std::optional<AtomicFile> first;
        {
            const Progress progress(console);
            first.emplace(file());
        }
        const AtomicFile second(file());
        std::raise(SIGINT);
    });
}

TEST_F(CleanUpDeathTest, TheSecondInterrupt) {
    expect_nothing_left([&] {
        const InterruptFlag interrupt;
        const AtomicFile half(file());
        std::raise(SIGINT);
        if (interrupted()) std::raise(SIGINT);
    });
}

TEST_F(CleanUpDeathTest, AFileThatIsBegunBeforeSigintIsGivenBack) {
    expect_nothing_left([&] {
        std::optional<InterruptFlag> interrupt(std::in_place);
        const AtomicFile half(file());
        interrupt.reset();
        std::raise(SIGINT);
    });
}

// In the thread that removes the files it stays blocked, and the first signal ends the process.
TEST_F(CleanUpDeathTest, AnotherSignalMeanwhile) {
    expect_nothing_left([&] {
        add_clean_up([] { std::raise(SIGTERM); });
        const AtomicFile half(file());
        std::raise(SIGINT);
    });
}

}  // namespace
}  // namespace hark
