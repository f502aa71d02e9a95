#include "core/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "core/error.h"
#include "core/io.h"
#include "core/mapped_file.h"
#include "core/models.h"
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

TEST(Models, TheDemoModelIsFoundByNameAndByKind) {
    const std::filesystem::path whisper = find_model("demo", "whisper");
    EXPECT_EQ(whisper.filename(), "whisper-demo");
    EXPECT_EQ(find_model("whisper-demo", "whisper"), whisper);
    EXPECT_EQ(find_model("demo", "gpt").filename(), "gpt-demo");
    EXPECT_THROW(find_model("none", "whisper"), Error);
    EXPECT_THROW(find_model("./none", "whisper"), Error);
}

TEST(Models, AWhisperModelMayBeAFile) {
    test::TemporaryDirectory home;
    ::setenv("HOME", home.path().c_str(), 1);
    const std::filesystem::path models = home.path() / ".local/share/hark/models";
    std::filesystem::create_directories(models / "whisper-both");
    test::write_text(models / "whisper-both/config.json", "{}");
    for (const char* name : {"tiny.pt", "ggml-base.bin", "both.pt"})
        test::write_text(models / name, "x");
    EXPECT_EQ(find_model("tiny", "whisper"), models / "tiny.pt");
    EXPECT_EQ(find_model("tiny.pt", "whisper"), models / "tiny.pt");
    EXPECT_EQ(find_model("base", "whisper"), models / "ggml-base.bin");
    EXPECT_EQ(find_model("both", "whisper"), models / "whisper-both");
    EXPECT_EQ(find_model((models / "tiny.pt").string(), "whisper"), models / "tiny.pt");
    EXPECT_THROW(find_model("tiny", "gpt"), Error);
    std::filesystem::create_symlink("tiny.pt", models / "whisper-default");
    EXPECT_EQ(find_model("", "whisper"), models / "whisper-default");
}

TEST(Models, ADirectoryThatHoldsNoModelSaysWhatItHolds) {
    test::TemporaryDirectory directory;
    const auto message = [&](const std::string& kind) {
        try {
            find_model(directory.path().string(), kind);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string("no error");
    };
    const std::string where = directory.path().string() + ": expected a model's directory";
    EXPECT_EQ(message("gpt").rfind(where, 0), 0u) << message("gpt");
    EXPECT_NE(message("gpt").find("found no config.json but an empty directory"),
              std::string::npos);
    EXPECT_EQ(message("gpt").find("generation_config.json"), std::string::npos);
    for (const char* name : {"g", "f", "e", "d", "c", "b", "a"})
        test::write_text(directory.path() / name, "");
    EXPECT_NE(message("whisper").find("config.json, model.safetensors, tokenizer.json or "
                                      "vocab.json and merges.txt, generation_config.json"),
              std::string::npos)
        << message("whisper");
    EXPECT_TRUE(message("whisper").ends_with("found no config.json but a, b, c, d, e, f, ..."))
        << message("whisper");
}

TEST(Models, APathIsAFilesToo) {
    test::TemporaryDirectory directory;
    test::write_text(directory.path() / "a", "");
    EXPECT_EQ(find_model((directory.path() / "a").string(), "gpt"), directory.path() / "a");
    EXPECT_THROW(find_model((directory.path() / "b").string(), "gpt"), Error);
    EXPECT_THROW(find_model("/dev/null", "gpt"), Error);
}

TEST(Models, WithoutANameTheUsersDefaultOrTheWaysOn) {
    test::TemporaryDirectory home;
    ::setenv("HOME", home.path().c_str(), 1);
    try {
        find_model("", "whisper");
        FAIL() << "a demonstration model was taken silently";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("--model demo"), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("--model NAME"), std::string::npos);
    }
    const std::filesystem::path models = home.path() / ".local/share/hark/models";
    std::filesystem::create_directories(models / "whisper-mine");
    test::write_text(models / "whisper-mine/config.json", "{}");
    std::filesystem::create_directory_symlink("whisper-mine", models / "whisper-default");
    EXPECT_EQ(find_model("", "whisper"), models / "whisper-default");
    EXPECT_EQ(find_model("mine", "whisper"), models / "whisper-mine");
}

}  // namespace
}  // namespace hark
