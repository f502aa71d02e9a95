// Recordings are decoded in a sandbox, by every tool that decodes; and no tool but those of the
// network opens a socket.
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/expect.h"
#include "support/landlock.h"
#include "support/process.h"
#include "tools/hark_serve.h"

using namespace hark::test;

namespace {

const std::string kRefusals =
    "open: Permission denied\nconnect: Operation not permitted\n"
    "socket: Operation not permitted\nexec: Operation not permitted\n";

// The words that preload the intruder (intruder/intruder.cc), writing to `log`.
std::string with_intruder(const std::string& log) {
    return "INTRUDER_LOG='" + log + "' ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD='" +
           (build_dir() / "tests/libhark-intruder.so").string() + "' ";
}

class Intruder : public testing::Test {
  protected:
    void SetUp() override {
        if (!has_landlock()) GTEST_SKIP() << "this kernel has no Landlock";
    }
    std::string run(const std::string& command) {
        const ProcessResult result = run_shell(with_intruder(log_) + command + " > /dev/null");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        EXPECT_EQ(result.err, "");
        const std::string said = read_text(log_);
        std::filesystem::remove(log_);
        return said;
    }

    TemporaryDirectory directory_;
    std::string log_ = directory_.path() / "log";
    std::string sample_ = samples_dir() / "room.m4a";
};

}  // namespace

TEST_F(Intruder, CannotLeaveAudioDecode) {
    EXPECT_EQ(run("audio-decode '" + sample_ + "'"), kRefusals);
    EXPECT_EQ(run("audio-decode --sandbox require - < '" + sample_ + "'"), kRefusals);
    EXPECT_EQ(run("audio-decode --jobs 2 '" + sample_ + "' '" + sample_ + "'"), kRefusals);
}

TEST_F(Intruder, CannotLeaveMel) { EXPECT_EQ(run("mel < '" + sample_ + "'"), kRefusals); }

// That the intruder's attempts succeed otherwise shows that they are real ones.
TEST_F(Intruder, IsFreeWithoutASandbox) {
    const std::string said = run("audio-decode --sandbox off '" + sample_ + "'");
    expect_contains(said, "open: done\n");
    expect_contains(said, "connect: Connection refused\nsocket: done\n");
    EXPECT_EQ(said.find("exec"), std::string::npos) << said;  // it has become another program
}

TEST_F(Intruder, CannotLeaveTheServersDecoder) {
    ::setenv("INTRUDER_LOG", log_.c_str(), 1);
    ::setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
    ::setenv("LD_PRELOAD", (build_dir() / "tests/libhark-intruder.so").c_str(), 1);
    {
        Served server({"--model", kSpeechDemo});
        TestClient client(server.address());
        client.send(form_request("/v1/audio/transcriptions", read_text(sample_)));
        EXPECT_EQ(client.receive().status, 200);
    }
    for (const char* name : {"INTRUDER_LOG", "ASAN_OPTIONS", "LD_PRELOAD"}) ::unsetenv(name);
    EXPECT_EQ(read_text(log_), kRefusals);
}

TEST(Sandbox, ReadsPipesThatMustBeCopiedToAFile) {
    if (!has_command("ffmpeg")) GTEST_SKIP() << "no ffmpeg to make an MP4 with its index last";
    const TemporaryDirectory directory;
    const std::string file = directory.path() / "a.m4a";
    ASSERT_EQ(run_shell("ffmpeg -nostdin -v error -i '" + (samples_dir() / "hat.wav").string() +
                        "' -c:a aac '" + file + "'")
                  .exit_code,
              0);
    const std::string whole = run_shell("audio-decode --sandbox off - < '" + file + "'").out;
    EXPECT_GT(whole.size(), 16000u);
    EXPECT_TRUE(run_shell("cat '" + file + "' | audio-decode -").out == whole);
    const ProcessResult two =
        run_shell("audio-decode --jobs 2 <(cat '" + file + "') <(cat '" + file + "') | wc -c");
    EXPECT_EQ(two.err, "");
    EXPECT_GT(std::stoul(two.out), 2 * whole.size() - 1000);
    EXPECT_TRUE(run_shell("cat '" + file + "' | mel").out ==
                run_shell("mel --sandbox off < '" + file + "'").out);
}
