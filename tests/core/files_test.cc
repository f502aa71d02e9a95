#include "core/files/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "core/error.h"
#include "core/files/io.h"
#include "core/files/mapped_file.h"
#include "support/process.h"

namespace hark {
namespace {

size_t entries_in(const std::filesystem::path& directory) {
    size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        n += !entry.path().empty();
    return n;
}

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
    test::TemporaryDirectory directory;
    const std::filesystem::path target = directory.path() / "x";
    {
        AtomicFile file(target);
        file.write("half");
        EXPECT_FALSE(std::filesystem::exists(target));
        for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
            EXPECT_EQ(entry.path().filename().string().substr(0, 3), ".x.");
    }
    EXPECT_EQ(entries_in(directory.path()), 0u);  // nothing is left of one not committed
    AtomicFile file(target);
    file.write("who");
    file.write("le");
    file.commit();
    EXPECT_EQ(test::read_text(target), "whole");
    EXPECT_EQ(entries_in(directory.path()), 1u);
    EXPECT_THROW(AtomicFile(directory.path() / "none/x"), Error);
}

// What is no regular file is written to as it is, and a link keeps pointing where it did.
TEST(AtomicFile, LeavesDevicesPipesAndLinksWhatTheyAre) {
    test::TemporaryDirectory directory;
    const std::filesystem::path pipe = directory.path() / "pipe", link = directory.path() / "link";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    {
        AtomicFile file(pipe);
        file.write("text");
        file.commit();
    }
    char text[16] = {};
    EXPECT_EQ(::read(reader, text, sizeof text), 4);
    EXPECT_STREQ(text, "text");
    ::close(reader);
    EXPECT_TRUE(std::filesystem::is_fifo(pipe));
    test::write_text(directory.path() / "target", "before");
    std::filesystem::create_symlink("target", link);
    AtomicFile file(link);
    file.write("after");
    file.commit();
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(test::read_text(directory.path() / "target"), "after");
}

// As /dev/stdout leads to the pipe that a shell has made: it has no name of its own.
TEST(AtomicFile, FollowsALinkToAPipeWithoutAName) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    AtomicFile file("/proc/self/fd/" + std::to_string(ends[1]));
    file.write("text");
    file.commit();
    char text[16] = {};
    EXPECT_EQ(::read(ends[0], text, sizeof text), 4);
    EXPECT_STREQ(text, "text");
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(ReadFile, NamesWhatFailed) {
    test::TemporaryDirectory directory;
    test::write_text(directory.path() / "x", "0123456789");
    EXPECT_EQ(read_file(directory.path() / "x"), "0123456789");
    EXPECT_THROW(read_file(directory.path() / "x", 9), Error);
    EXPECT_THROW(read_file(directory.path()), Error);
    EXPECT_THROW(read_file(directory.path() / "none"), Error);
}

TEST(FirstBytes, AreThoseThatThereAre) {
    test::TemporaryDirectory directory;
    test::write_text(directory.path() / "x", "0123");
    EXPECT_EQ(first_bytes(directory.path() / "x", 2), "01");
    EXPECT_EQ(first_bytes(directory.path() / "x", 9), "0123");
    EXPECT_THROW(first_bytes(directory.path() / "none", 4), Error);
    EXPECT_THROW(first_bytes(directory.path(), 4), Error);
}

TEST(AtomicFile, ALongNameIsWritten) {
    test::TemporaryDirectory directory;
    const std::filesystem::path target = directory.path() / std::string(255, 'n');
    write_file(target, "text");
    EXPECT_EQ(test::read_text(target), "text");
}

TEST(AtomicFile, RespectsTheUmask) {
    test::TemporaryDirectory directory;
    const mode_t before = ::umask(027);
    write_file(directory.path() / "file", "");
    AtomicDirectory(directory.path() / "folder").commit();
    ::umask(before);
    struct stat info {};
    ASSERT_EQ(::stat((directory.path() / "file").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0640u);
    ASSERT_EQ(::stat((directory.path() / "folder").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0750u);
}

// A process that a signal ends in the middle leaves nothing.
TEST(TemporaryPathDeathTest, ASignalRemovesWhatIsNotWhole) {
    test::TemporaryDirectory directory;
    const std::filesystem::path at = directory.path();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
        const auto write_and_end = [&] {
            AtomicFile done(at / "done");
            done.commit();
            AtomicFile file(at / "file");
            file.write("half");
            AtomicDirectory folder(at / "folder");
            write_file(folder.path() / "whole", "text");
            AtomicFile inside(folder.path() / "half");
            std::raise(signal);
        };
        EXPECT_EXIT(write_and_end(), testing::KilledBySignal(signal), "");
        EXPECT_TRUE(std::filesystem::exists(at / "done"));
        EXPECT_EQ(entries_in(at), 1u);
    }
}

TEST(MappedFileDeathTest, AFileThatBecomesShorterIsNamed) {
    test::TemporaryDirectory directory;
    const std::filesystem::path path = directory.path() / "file";
    test::write_text(path, std::string(100'000, 'x'));
    const MappedFile file(path);
    std::filesystem::resize_file(path, 50'000);
    EXPECT_EQ(file.data()[0], std::byte{'x'});
    EXPECT_EXIT(std::_Exit(static_cast<int>(file.data()[99'999])), testing::ExitedWithCode(1),
                "file: became shorter while it was read");
    // The rest of the last page reads as zeros.
    EXPECT_EQ(file.data()[50'001], std::byte{0});
    EXPECT_THROW(file.check(), Error);
    EXPECT_THROW(file.forget(0, 4096), Error);
    // Another file of the same name is not this one.
    test::write_text(directory.path() / "other", "short");
    std::filesystem::rename(directory.path() / "other", path);
    file.check();
}

TEST(MappedFile, APipeOrADeviceIsRefusedAtOnce) {
    test::TemporaryDirectory directory;
    const std::filesystem::path pipe = directory.path() / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_THROW(MappedFile{pipe}, Error);
    EXPECT_THROW(read_file(pipe), Error);
    EXPECT_THROW(first_bytes(pipe, 4), Error);
    EXPECT_THROW(read_file("/dev/zero"), Error);
    EXPECT_THROW(read_file_or_pipe("/dev/zero", 1 << 20), Error);
}

TEST(Spool, HoldsWhatWasReadAndTheRest) {
    int fds[2];
    ASSERT_EQ(::pipe(fds), 0);
    ASSERT_EQ(::write(fds[1], "rest", 4), 4);
    ::close(fds[1]);
    const int spool = spool_to_unlinked_file(fds[0], "read ");
    ByteReader in(spool, "spool");
    EXPECT_EQ(in.peek(4), "read");
    char text[16] = {};
    EXPECT_EQ(in.read(text, sizeof text), 9u);
    EXPECT_STREQ(text, "read rest");
    ::close(spool);
    ::close(fds[0]);
}

#ifdef F_SETPIPE_SZ
// A user who has widened many pipes gets no more; the test has only two.
TEST(Pipe, IsWidenedByItsReaderAndNeverMadeNarrower) {
    int fds[2];
    ASSERT_EQ(::pipe(fds), 0);
    widen_pipe(fds[0]);
    EXPECT_EQ(::fcntl(fds[1], F_GETPIPE_SZ), 1 << 20);
    if (::fcntl(fds[1], F_SETPIPE_SZ, 1 << 21) > 0) {  // a user without rights cannot
        widen_pipe(fds[0]);
        EXPECT_EQ(::fcntl(fds[1], F_GETPIPE_SZ), 1 << 21);
    }
    ::close(fds[0]);
    ::close(fds[1]);
}
#endif

}  // namespace
}  // namespace hark
