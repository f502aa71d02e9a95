// Token files: written as llm.c writes them, read back, and refused where they are not whole.
#include "text/token_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "core/error.h"
#include "core/files/files.h"
#include "support/process.h"

using namespace hark;

namespace {

class TokenFiles : public testing::Test {
  protected:
    std::filesystem::path path() const { return directory_.path() / "t.bin"; }
    void write(std::span<const int32_t> ids, int id_bytes) {
        AtomicFile file(path());
        TokenWriter writer(file.fd(), "t.bin", id_bytes);
        writer.write(ids.first(ids.size() / 2));
        writer.write(ids.subspan(ids.size() / 2));
        writer.finish();
        file.commit();
    }
    std::string refusal() const {
        return refusal_of([&] { TokenFile file(path()); });
    }
    static std::string refusal_of(const std::function<void()>& f) {
        try {
            f();
        } catch (const Error& error) {
            return error.what();
        }
        return "accepted";
    }
    void expect_refused(const std::string& bytes, const std::string& part) {
        test::write_text(path(), bytes);
        EXPECT_NE(refusal().find(part), std::string::npos) << refusal();
        EXPECT_NE(refusal().find("t.bin"), std::string::npos) << refusal();
    }

  private:
    test::TemporaryDirectory directory_;
};

std::string header(int32_t magic, int32_t version, int32_t count) {
    const int32_t fields[3] = {magic, version, count};
    std::string bytes(1024, '\0');
    std::memcpy(bytes.data(), fields, sizeof fields);
    return bytes;
}

}  // namespace

TEST_F(TokenFiles, SixteenBitsAreAsLlmCWritesThem) {
    write(std::vector<int32_t>{50256, 1, 65535}, 2);
    EXPECT_EQ(test::read_text(path()),
              header(20240520, 1, 3) + std::string("\x50\xC4\x01\x00\xFF\xFF", 6));
    const TokenFile file(path());
    EXPECT_EQ(file.size(), 3u);
    EXPECT_EQ(file[0], 50256);
    EXPECT_EQ(file[2], 65535);
    file.check_vocabulary(65536);
    EXPECT_EQ(refusal_of([&] { file.check_vocabulary(65535); }),
              path().string() + ": token 2: the id 65535 is over the vocabulary of 65535");
}

TEST_F(TokenFiles, ThirtyTwoBitsAreAsLlama3s) {
    EXPECT_EQ(id_bytes_for(65536), 2);
    EXPECT_EQ(id_bytes_for(65537), 4);
    write(std::vector<int32_t>{128000, 7}, 4);
    EXPECT_EQ(test::read_text(path()),
              header(20240801, 7, 2) + std::string("\x00\xF4\x01\x00\x07\x00\x00\x00", 8));
    const TokenFile file(path());
    int32_t ids[2];
    file.copy(0, 2, ids);
    EXPECT_EQ(ids[0], 128000);
    EXPECT_EQ(ids[1], 7);
}

TEST_F(TokenFiles, WhatIsNotWholeIsRefused) {
    expect_refused("", "is empty");
    expect_refused(header(20240520, 1, 0).substr(0, 1023),
                   "its header is cut off (got 1023 bytes, expected 1024)");
    expect_refused(header(20240521, 1, 0), "not a token file; gpt-tokenize makes one from text");
    expect_refused(header(0, 0, 0), "did not finish");
    expect_refused(header(20240520, 7, 0), "expected 1");
    expect_refused(header(20240801, 1, 0), "expected 7");
    expect_refused(header(20240520, 1, -1), "got -1");
    expect_refused(header(20240520, 1, 2) + "abc", "got a file of 1027 bytes, expected 1028");
    expect_refused(header(20240520, 1, 2) + "abcde", "got a file of 1029 bytes");
    expect_refused(header(20240801, 7, 1) + "ab", "got a file of 1026 bytes, expected 1028");
}

TEST_F(TokenFiles, StreamsAreCheckedAtTheirEnd) {
    const auto read = [&](const std::string& bytes, size_t piece) {
        test::write_text(path(), bytes);
        const int fd = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
        ByteReader in(fd, "stream");
        std::vector<int32_t> all;
        std::string error = refusal_of([&] {
            TokenReader reader(in);
            for (auto ids = reader.next(piece); !ids.empty(); ids = reader.next(piece))
                all.insert(all.end(), ids.begin(), ids.end());
        });
        ::close(fd);
        return std::pair(all, error);
    };
    const std::string good = header(20240520, 1, 3) + std::string("\1\0\2\0\3\0", 6);
    for (size_t piece : {1, 2, 100})
        EXPECT_EQ(read(good, piece),
                  (std::pair(std::vector<int32_t>{1, 2, 3}, std::string("accepted"))));
    EXPECT_EQ(read(good + "x", 2).second,
              "stream: more bytes follow the 3 tokens that its header counts");
    EXPECT_EQ(read(good.substr(0, good.size() - 1), 2).second,
              "stream: the input is cut off (got 2 tokens, expected 3)");
    EXPECT_NE(read("short", 2).second.find("stream: not a token file"), std::string::npos);
}

// 4 GiB of which the file system keeps a few pages: offsets need 64 bits.
TEST_F(TokenFiles, OverTwoGibibytes) {
    test::write_text(path(), header(20240520, 1, INT32_MAX));
    const int fd = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
    const off_t last = 1024 + 2 * off_t{INT32_MAX} - 2;
    if (::pwrite(fd, "\x39\x30", 2, last) != 2) {
        ::close(fd);
        GTEST_SKIP() << "the file system has no files of 4 GiB";
    }
    ::close(fd);
    const TokenFile file(path());
    EXPECT_EQ(file.size(), static_cast<size_t>(INT32_MAX));
    EXPECT_EQ(file[file.size() - 1], 12345);
    EXPECT_EQ(file[1'500'000'000], 0);
}

TEST_F(TokenFiles, MoreThanAHeaderCountsIsRefused) {
    const size_t count = size_t{1} << 31;
    void* nothing = ::mmap(nullptr, count * sizeof(int32_t), PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(nothing, MAP_FAILED);
    AtomicFile file(path());
    TokenWriter writer(file.fd(), "t.bin", 2);
    const std::string error = refusal_of([&] {
        writer.write({static_cast<const int32_t*>(nothing), count});
    });
    EXPECT_NE(error.find("--shard-tokens"), std::string::npos) << error;
    ::munmap(nothing, count * sizeof(int32_t));
}
