#include "formats/chunk_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <vector>

#include "core/error.h"
#include "support/error_of.h"

namespace hark {
namespace {

Chunk audio_chunk(int64_t start, int64_t samples, bool is_last) {
    Chunk chunk;
    chunk.kind = "audio";
    chunk.recording = chunk.source = "a";
    chunk.start = start;
    chunk.last = is_last;
    std::vector<float> values(static_cast<size_t>(samples), 0.5f);
    chunk.document.add("samples", Tensor(values.data(), Dtype::f32, {samples}));
    return chunk;
}

TEST(ChunkWriter, ChunksArriveInTheirOrderWhileTheNextAreMade) {
    constexpr int64_t kChunks = 40, kSamples = 250'000;  // 40 MB, more than may wait
    int fds[2];
    ASSERT_EQ(::pipe(fds), 0);
    std::thread maker([&] {
        ByteWriter out(fds[1], "pipe");
        ChunkWriter writer(out);
        for (int64_t i = 0; i < kChunks; ++i)
            writer.write(audio_chunk(i * kSamples, kSamples, i + 1 == kChunks));
        writer.finish();
        ::close(fds[1]);
    });
    ByteReader in(fds[0], "pipe");
    RecordingReader reader(in, "audio", "");
    int64_t chunks = 0;
    while (const std::optional<Chunk> chunk = reader.next())
        EXPECT_EQ(chunk->start, chunks++ * kSamples);
    EXPECT_EQ(chunks, kChunks);
    maker.join();
    ::close(fds[0]);
}

TEST(ChunkWriter, WhatIsNotFinishedIsWrittenBeforeItsEnd) {
    int fds[2];
    ASSERT_EQ(::pipe(fds), 0);
    ByteWriter out(fds[1], "pipe");
    ChunkWriter(out).write(audio_chunk(0, 100, true));
    ::close(fds[1]);
    ByteReader in(fds[0], "pipe");
    RecordingReader reader(in, "audio", "");
    EXPECT_TRUE(reader.next().has_value());
    EXPECT_FALSE(reader.next().has_value());
    ::close(fds[0]);
}

TEST(ChunkWriter, ThrowsWhatTheSystemRefused) {
    std::signal(SIGPIPE, SIG_IGN);
    int fds[2];
    ASSERT_EQ(::pipe(fds), 0);
    ::close(fds[0]);
    ByteWriter out(fds[1], "pipe");
    ChunkWriter writer(out);
    writer.write(audio_chunk(0, 100, true));
    EXPECT_EQ(test::error_of([&] { writer.finish(); }), "pipe: cannot write: Broken pipe");
    EXPECT_EQ(test::error_of([&] { writer.write(audio_chunk(100, 100, true)); }),
              "pipe: cannot write: Broken pipe");
    ::close(fds[1]);
}

}  // namespace
}  // namespace hark
