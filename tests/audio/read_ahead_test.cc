#include "audio/read_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "core/files/files.h"
#include "support/audio.h"
#include "support/process.h"

namespace hark {
namespace {

constexpr int64_t kSecond = kSampleRate;

// Writes a WAV file that never ends into a pipe; `seconds` says how much of it has been taken.
class EndlessWav {
  public:
    explicit EndlessWav(const std::string& path)
        : thread_([this, path] {
              std::ofstream out(path, std::ios::binary);
              out << test::wav_file(1, 2, kSampleRate, 1, "", 0xffffffff) << std::flush;
              while (out.write(std::string(2 * kSecond, '\1').data(), 2 * kSecond).flush())
                  ++seconds_;
          }) {}
    ~EndlessWav() { thread_.join(); }

    int64_t seconds() const { return seconds_; }
    // Waits until that much has been taken.
    void await(int64_t seconds) const {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (seconds_ < seconds && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_GE(seconds_, seconds);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // in which more could be
    }

  private:
    std::atomic<int64_t> seconds_ = 0;
    std::thread thread_;
};

TEST(ReadAhead, HoldsMoreOfLaterInputsIfTheFirstIsAwaitedOrTheReaderIsFast) {
    std::signal(SIGPIPE, SIG_IGN);  // of the writers, when the reader leaves
    const test::TemporaryDirectory folder;
    const std::string slow = folder.path() / "slow", fast = folder.path() / "fast";
    ASSERT_EQ(::mkfifo(slow.c_str(), 0600), 0);
    ASSERT_EQ(::mkfifo(fast.c_str(), 0600), 0);
    constexpr int64_t kAhead = 120, kMost = 400, kPiece = 30, kPipe = 5;  // seconds
    const EndlessWav endless(fast);
    ReadAhead input({slow, fast}, ReadOptions{}, kPiece * kSecond, 2, kMost * kSecond);
    std::ofstream out(slow, std::ios::binary);
    endless.await(kAhead);
    EXPECT_LE(endless.seconds(), kAhead + 2 * kPiece + kPipe);

    std::optional<Chunk> first;
    std::thread reader([&] { first = input.next(); });
    endless.await(kMost);
    EXPECT_LE(endless.seconds(), kMost + 2 * kPiece + kPipe);
    out << test::noise_wav(1, kSecond);
    out.close();
    reader.join();
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->source, slow);
    EXPECT_EQ(first->length(), kSecond);

    // What is held is read first. A reader that takes three minutes at once is fast: more is held
    // again, though nobody waits.
    const int64_t taken = endless.seconds();
    for (int64_t piece = 0; piece < kMost / kPiece / 2; ++piece) {
        const std::optional<Chunk> chunk = input.next();
        ASSERT_TRUE(chunk.has_value());
        EXPECT_EQ(chunk->source, fast);
        EXPECT_EQ(chunk->start, piece * kPiece * kSecond);
    }
    endless.await(taken + 2 * kPiece);
    EXPECT_LE(endless.seconds(), taken + kMost / 2 + 2 * kPiece + kPipe);
}

// An input that has been begun is open for reading, which a writer can tell.
bool is_begun(const std::string& pipe) {
    const int writer = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK);
    if (writer < 0) {
        EXPECT_EQ(errno, ENXIO);
        return false;
    }
    ::close(writer);
    return true;
}

TEST(ReadAhead, ShortInputsTogetherHoldNoMoreThanLongOnes) {
    const test::TemporaryDirectory folder;
    const std::string minute = folder.path() / "minute.wav", pipe = folder.path() / "pipe";
    write_file(minute, test::noise_wav(1, 60 * kSecond));
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    constexpr size_t kInputs = 12;
    std::vector<std::string> paths(kInputs, minute);
    paths.push_back(pipe);
    ReadAhead input(paths, ReadOptions{}, 30 * kSecond, 2, 400 * kSecond);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // in which all could be read
    EXPECT_FALSE(is_begun(pipe));
    for (size_t chunks = 0; chunks < 2 * kInputs; ++chunks) {
        const std::optional<Chunk> chunk = input.next();
        ASSERT_TRUE(chunk.has_value());
        EXPECT_EQ(chunk->source, minute);
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!is_begun(pipe) && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::optional<Chunk> last = input.next();  // is_begun() has closed it without a byte
    ASSERT_TRUE(last.has_value());
    EXPECT_EQ(last->source, pipe);
    EXPECT_NE(last->error, "");
    EXPECT_FALSE(input.next().has_value());
}

}  // namespace
}  // namespace hark
