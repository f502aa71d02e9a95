#include "whisper/transcribe/recording_queue.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "whisper/support.h"

namespace hark::test {
namespace {

using whisper::Arrived;
using whisper::RecordingFeed;

// A mel stream that is written while it is read.
class MelPipe {
  public:
    MelPipe() {
        int fds[2];
        EXPECT_EQ(::pipe(fds), 0);
        end_ = fds[0];
        out_ = std::make_unique<ByteWriter>(fds[1], "pipe");
        fd_ = fds[1];
    }
    ~MelPipe() { close(); }

    int end() const { return end_; }
    void recording(const std::string& source) {
        Chunk chunk = mel_chunk(std::vector<float>(1600), 80);
        chunk.source = source;
        write_chunk(*out_, std::move(chunk));
        out_->flush();
    }
    void bytes(std::string_view bytes) {
        out_->write(bytes);
        out_->flush();
    }
    void close() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }

  private:
    std::unique_ptr<ByteWriter> out_;
    int end_ = -1, fd_ = -1;
};

TEST(RecordingFeed, GivesRecordingsAsTheyEndAndIsOverBehindTheLast) {
    MelPipe pipe;
    RecordingFeed feed(pipe.end(), "stdin", 80, 4);
    EXPECT_FALSE(feed.next(false).has_value());
    EXPECT_FALSE(feed.over());
    pipe.recording("a");
    const std::optional<Arrived> first = feed.next(true);  // with nothing behind it
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->source, "a");
    EXPECT_EQ(first->mel.content_frames(), 10);
    pipe.recording("b");
    pipe.close();
    const std::optional<Arrived> second = feed.next(true);
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(second->source, "b");
    EXPECT_FALSE(feed.next(true).has_value());
    EXPECT_TRUE(feed.over());
    feed.check();
}

TEST(RecordingFeed, WhatCameBeforeABreakIsGivenFirst) {
    MelPipe pipe;
    RecordingFeed feed(pipe.end(), "stdin", 80, 4);
    pipe.recording("a");
    pipe.recording("b");
    pipe.bytes("neither mel nor a header");
    pipe.close();
    for (const char* source : {"a", "b"}) {
        const std::optional<Arrived> arrived = feed.next(true);
        ASSERT_TRUE(arrived.has_value());
        EXPECT_EQ(arrived->source, source);
    }
    EXPECT_FALSE(feed.next(true).has_value());
    EXPECT_TRUE(feed.over());
    EXPECT_THROW(feed.check(), Error);
}

// A pipe holds some of these at most: the writer would wait for ever if the thread that reads them
// did not go on when they are taken, and would end at once if it did not wait.
TEST(RecordingFeed, ReadsOnAsRecordingsAreTaken) {
    constexpr int kRecordings = 200;
    MelPipe pipe;
    RecordingFeed feed(pipe.end(), "stdin", 80, 2);
    std::atomic<int> written = 0;
    std::thread writer([&] {
        for (int i = 0; i < kRecordings; ++i) {
            pipe.recording(std::to_string(i));
            ++written;
        }
        pipe.close();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_LT(written, kRecordings);
    for (int i = 0; i < kRecordings; ++i) {
        const std::optional<Arrived> arrived = feed.next(true);
        ASSERT_TRUE(arrived.has_value());
        EXPECT_EQ(arrived->source, std::to_string(i));
    }
    writer.join();
    EXPECT_FALSE(feed.next(true).has_value());
    feed.check();
}

TEST(RecordingFeed, MayEndWhileItsThreadWaits) {
    MelPipe quiet, full;
    { const RecordingFeed feed(quiet.end(), "stdin", 80, 4); }  // for the stream
    RecordingFeed feed(full.end(), "stdin", 80, 1);             // for a recording to be taken
    for (int i = 0; i < 3; ++i) full.recording("a");
    EXPECT_TRUE(feed.next(true).has_value());
    quiet.recording("nobody takes it");
}

}  // namespace
}  // namespace hark::test
