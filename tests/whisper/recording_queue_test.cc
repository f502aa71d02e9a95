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

using whisper::ReceivedRecording;
using whisper::RecordingQueue;

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

// With 0 and 2 threads that find speech.
class RecordingQueues : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Speech, RecordingQueues, ::testing::Values(0, 2));

TEST_P(RecordingQueues, GivesRecordingsAsTheyEndAndIsOverBehindTheLast) {
    MelPipe pipe;
    RecordingQueue queue(pipe.end(), "stdin", 80, 4, GetParam());
    EXPECT_FALSE(queue.next(false).has_value());
    EXPECT_FALSE(queue.over());
    pipe.recording("a");
    const std::optional<ReceivedRecording> first = queue.next(true);  // without another after it
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->source, "a");
    EXPECT_EQ(first->mel.content_frames(), 10);
    pipe.recording("b");
    pipe.close();
    const std::optional<ReceivedRecording> second = queue.next(true);
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(second->source, "b");
    EXPECT_FALSE(queue.next(true).has_value());
    EXPECT_TRUE(queue.over());
    queue.check();
}

TEST_P(RecordingQueues, WhatCameBeforeABreakIsGivenFirst) {
    MelPipe pipe;
    RecordingQueue queue(pipe.end(), "stdin", 80, 4, GetParam());
    pipe.recording("a");
    pipe.recording("b");
    pipe.bytes("neither mel nor a header");
    pipe.close();
    for (const char* source : {"a", "b"}) {
        const std::optional<ReceivedRecording> received = queue.next(true);
        ASSERT_TRUE(received.has_value());
        EXPECT_EQ(received->source, source);
    }
    EXPECT_FALSE(queue.next(true).has_value());
    EXPECT_TRUE(queue.over());
    EXPECT_THROW(queue.check(), Error);
}

// A pipe holds only a few of these: the writer would wait for ever if the reader thread did not
// continue when recordings are taken, and would end at once if the thread did not wait.
TEST_P(RecordingQueues, ReadsOnAsRecordingsAreTaken) {
    constexpr int kRecordings = 200;
    MelPipe pipe;
    RecordingQueue queue(pipe.end(), "stdin", 80, 2, GetParam());
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
        const std::optional<ReceivedRecording> received = queue.next(true);
        ASSERT_TRUE(received.has_value());
        EXPECT_EQ(received->source, std::to_string(i));
    }
    writer.join();
    EXPECT_FALSE(queue.next(true).has_value());
    queue.check();
}

TEST_P(RecordingQueues, MayEndWhileItsThreadWaits) {
    MelPipe quiet, full;
    {
        const RecordingQueue queue(quiet.end(), "stdin", 80, 4, GetParam());
    }  // waits for the stream
    RecordingQueue queue(full.end(), "stdin", 80, 1,
                         GetParam());  // waits until a recording is taken
    for (int i = 0; i < 3; ++i) full.recording("a");
    EXPECT_TRUE(queue.next(true).has_value());
    quiet.recording("nobody takes it");
}

}  // namespace
}  // namespace hark::test
