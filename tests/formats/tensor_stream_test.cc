#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>
#include <thread>

#include "core/error.h"
#include "formats/recordings.h"

namespace hark {
namespace {

// What a reader gives for these bytes on a pipe: the number of documents, or the error.
template <class Read>
std::string read_all(const std::string& bytes, Read read) {
    int fds[2];
    EXPECT_EQ(::pipe(fds), 0);
    std::thread writer([&] {
        ByteWriter out(fds[1], "pipe");
        out.write(bytes);
        out.flush();
        ::close(fds[1]);
    });
    std::string result;
    try {
        ByteReader in(fds[0], "stdin");
        result = read(in);
        char rest[4096];
        while (in.read_some(rest, sizeof rest) > 0) {
        }
    } catch (const Error& error) {
        result = error.what();
        char rest[4096];
        while (::read(fds[0], rest, sizeof rest) > 0) {
        }
    }
    writer.join();
    ::close(fds[0]);
    return result;
}

std::string documents_in(const std::string& bytes) {
    return read_all(bytes, [](ByteReader& in) {
        TensorStreamReader reader(in);
        int n = 0;
        while (reader.next()) ++n;
        return std::to_string(n);
    });
}

std::string chunks_in(const std::string& bytes, const char* kind = "audio") {
    return read_all(bytes, [&](ByteReader& in) {
        RecordingReader reader(in, kind, "do this");
        std::string text;
        while (auto chunk = reader.next())
            text += concat(chunk->recording, ":", chunk->length(), chunk->last ? "." : " ");
        return text;
    });
}

std::string bytes_of(const Document& document) {
    std::string text = format_safetensors_header(document.header);
    if (document.data)
        text.append(reinterpret_cast<const char*>(document.data->data()), document.data->size());
    return text;
}

std::string chunk_bytes(const std::string& recording, int64_t start, int64_t n, bool last,
                        const Metadata& changes = {}, float value = 0.5f) {
    std::vector<float> samples(static_cast<size_t>(n), value);
    Document document;
    document.header.metadata = {{"hark", "1"},
                                {"kind", "audio"},
                                {"recording", recording},
                                {"channel", "0"},
                                {"source", "s"},
                                {"sample_rate", "16000"},
                                {"start", std::to_string(start)}};
    if (last) document.header.metadata["last"] = "true";
    for (const auto& [key, text] : changes) document.header.metadata[key] = text;
    document.add("samples", Tensor(samples.data(), Dtype::f32, {n}));
    return bytes_of(document);
}

TEST(TensorStream, DocumentsFollowOneAnother) {
    const std::string one = chunk_bytes("0", 0, 5, true);
    EXPECT_EQ(documents_in(""), "0");
    EXPECT_EQ(documents_in(one + one + one), "3");
}

TEST(TensorStream, EveryTruncationIsAnError) {
    const std::string one = chunk_bytes("0", 0, 5, true);
    for (size_t size = 1; size < one.size(); ++size) {
        const std::string error = documents_in(one + one.substr(0, size));
        EXPECT_NE(error.find("document 2: the stream ends inside"), std::string::npos)
            << size << ": " << error;
    }
}

TEST(TensorStream, AHugeHeaderIsRefusedUnread) {
    std::string bytes(8, '\0');
    bytes[3] = 1;  // 16 MiB
    EXPECT_NE(documents_in(bytes).find("a header of 16777216 bytes"), std::string::npos);
    bytes[7] = '\x7f';
    EXPECT_NE(documents_in(bytes).find("this is no tensor stream"), std::string::npos);
}

TEST(TensorStream, APromiseOfMuchDataTakesNoMemory) {
    SafetensorsHeader header;
    header.tensors.push_back({"samples", "F32", {int64_t{1} << 40}, 0, uint64_t{1} << 42});
    EXPECT_NE(documents_in(format_safetensors_header(header) + "abc").find("got 3 bytes"),
              std::string::npos);
}

TEST(Recordings, ChunksOfSeveralInterleaved) {
    EXPECT_EQ(chunks_in(chunk_bytes("a", 0, 3, false) + chunk_bytes("b", 0, 2, true) +
                        chunk_bytes("a", 3, 4, true) + chunk_bytes("b", 0, 1, true)),
              "a:3 b:2.a:4.b:1.");
    EXPECT_EQ(chunks_in(chunk_bytes("a", 0, 0, true)), "a:0.");
}

TEST(Recordings, WhatIsWrongIsSaid) {
    const auto expect = [](const std::string& bytes, const std::string& part,
                           const char* kind = "audio") {
        const std::string error = chunks_in(bytes, kind);
        EXPECT_NE(error.find(part), std::string::npos) << "found: " << error;
    };
    expect("", "stdin: no data (expected audio documents); the stage before has failed");
    expect(chunk_bytes("a", 0, 3, false), "ends before the last document of 'a'");
    expect(chunk_bytes("a", 0, 3, false) + chunk_bytes("a", 4, 3, true),
           "has a gap (got a chunk at 4, expected 3)");
    for (const size_t bytes : {4u, 8u, 20u})  // cut, and nothing else
        EXPECT_EQ(chunks_in(chunk_bytes("a", 0, 3, true).substr(0, bytes)).find("do this"),
                  std::string::npos);
    expect(std::string("no tensor stream at all"), "do this");
    expect(std::string("\x1e\0\0\0\0\0\0\0", 8) + "no JSON", "do this");
    expect(chunk_bytes("a", 1, 3, true), "has a gap (got a chunk at 1, expected 0)");
    expect(chunk_bytes("a", 0, 3, true, {{"kind", "mel"}}), "(got mel, expected audio); do this");
    expect(chunk_bytes("a", 0, 3, true), "(got audio, expected mel); do this", "mel");
    expect(chunk_bytes("a", 0, 3, true, {{"hark", "2"}}), "(got '2', expected 1)");
    expect(chunk_bytes("a", 0, 3, true, {{"sample_rate", "8000"}}), "'8000'");
    expect(chunk_bytes("a", 0, 3, true, {{"start", "-1"}}),
           "'start' is no whole number (got '-1')");
    expect(chunk_bytes("a", 0, 3, false, {{"error", "x"}}),
           "only a recording's last document may have an error");
    expect(chunk_bytes("a", 0, 3, true, {}, std::numeric_limits<float>::infinity()),
           "stdin: document 1: a value is not finite");

    Document wrong_rank;
    wrong_rank.header.metadata = {{"hark", "1"},  {"kind", "audio"},        {"recording", "a"},
                                  {"start", "0"}, {"sample_rate", "16000"}, {"last", "true"}};
    const Document no_tensor = wrong_rank;
    float values[4] = {};
    wrong_rank.add("samples", Tensor(values, Dtype::f32, {2, 2}));
    expect(bytes_of(wrong_rank), "(got f32 (2, 2), expected samples f32 (n))");
    expect(bytes_of(no_tensor), "no tensor 'samples'");
}

TEST(Recordings, WriteChunkIsReadBack) {
    int fds[2];
    ASSERT_EQ(::pipe(fds), 0);
    Chunk chunk;
    chunk.kind = "audio";
    chunk.recording = "r";
    chunk.source = "name \"quoted\" \xc3\xa9";
    chunk.last = true;
    chunk.error = "it broke";
    float values[3] = {1, 2, 3};
    chunk.document.header.metadata["unknown"] = "kept";
    chunk.document.add("samples", Tensor(values, Dtype::f32, {3}));
    chunk.document.add("extra", Tensor(values, Dtype::f32, {1, 3}));
    {
        ByteWriter out(fds[1], "pipe");
        write_chunk(out, chunk);
        out.flush();
        ::close(fds[1]);
    }
    ByteReader in(fds[0], "stdin");
    RecordingReader reader(in, "audio", "");
    const auto read = reader.next();
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->source, chunk.source);
    EXPECT_EQ(read->error, "it broke");
    EXPECT_EQ(read->document.header.metadata.at("unknown"), "kept");
    EXPECT_EQ(read->values().as<float>()[2], 3);
    EXPECT_EQ(read->document.tensor("extra").as<float>()[1], 2);
    EXPECT_FALSE(reader.next().has_value());
    ::close(fds[0]);
}

}  // namespace
}  // namespace hark
