// Which tools use the network, by their system calls; the pipe without a network; HARK_OFFLINE.
#include "tools/gpt_train.h"
#include "tools/hark_model.h"

using namespace hark::test;

namespace {

const std::string kSample = (samples_dir() / "room.m4a").string();
const std::string kPipe = "audio-decode '" + kSample +
                          "' | mel | whisper-transcribe --model demo "
                          "--threads 1 ";

// The calls of all that `command` starts which open, use or answer sockets.
std::string socket_calls(const std::string& command) {
    const TemporaryDirectory directory;
    const std::string log = directory.path() / "calls", script = directory.path() / "script";
    write_text(script, command);
    // A program that is traced cannot search itself for leaks. Without HOME or SHELL, bash looks for
    // the user's, by a socket of the C library to a local name service.
    const ProcessResult run =
        run_shell("HOME=/ SHELL=/bin/sh ASAN_OPTIONS=detect_leaks=0 strace -f -qq -o '" + log +
                  "' -e trace=socket,socketpair,connect,bind,listen,accept,accept4,sendto,sendmsg "
                  "-e signal=none bash '" +
                  script + "'");
    EXPECT_EQ(run.exit_code, 0) << command << "\n" << run.err;
    return read_text(log);
}

bool cannot_trace() {
    return !has_command("strace") || run_shell("strace -qq -o /dev/null true").exit_code != 0;
}

}  // namespace

TEST(Network, NoToolOpensASocketButThoseForIt) {
    if (cannot_trace()) GTEST_SKIP() << "needs strace, and the right to trace";
    const TemporaryDirectory directory;
    const std::string run = directory.path() / "run", refs = directory.path() / "refs",
                      shards = directory.path() / "shards", trace = directory.path() / "trace";
    write_text(refs, "{\"source\":\"" + kSample + "\",\"text\":\"x\"}\n");
    const std::string commands[] = {
        kPipe + "--format jsonl --word-timestamps | hark-redact -q",
        "audio-decode '" + kSample + "' | vad | wc -c",
        kPipe + "--format jsonl | whisper-eval --reference '" + refs + "'",
        "hark transcribe --model demo --threads 1 '" + kSample + "'",
        "gpt-generate --model demo --prompt Once --max-tokens 3 --threads 1",
        "echo Hello | gpt-tokenize --model demo",
        "echo '{\"text\":\"Hello you.\"}' | gpt-eval --model demo --threads 1",
        "echo Hello | gpt-embed --model demo --threads 1",
        quoted(arguments_for(run, {"--steps", "1", "--warmup", "0"})),
        "hark-advise --model turbo --gpu h100 --compare",
        "hark-doctor --device cpu || true",
        "hark-shard plan '" + samples_dir().string() + "' -o '" + shards + "'",
        kPipe + "--profile '" + trace + "' && hark-trace summary '" + trace + "'",
        "hark-model list",
        "hark-model verify whisper-demo",
        "hark --help"};
    for (const std::string& command : commands) EXPECT_EQ(socket_calls(command), "") << command;
    // What the trace shows of a tool that does.
    expect_contains(socket_calls("hark-model get tiny --from http://127.0.0.1:1 || true"),
                    "socket(AF_INET");
}

TEST(Network, ThePipeNeedsNone) {
    if (run_shell("unshare -rn true").exit_code != 0) GTEST_SKIP() << "needs unshare -rn";
    const std::string text = run_shell(kPipe).out;
    EXPECT_GT(text.size(), 10u);
    const TemporaryDirectory directory;
    write_text(directory.path() / "script", kPipe);
    const ProcessResult alone =
        run_shell("unshare -rn bash '" + (directory.path() / "script").string() + "'");
    EXPECT_EQ(alone.err, "");
    EXPECT_EQ(alone.out, text);
}

class Offline : public HarkModel {};

TEST_F(Offline, NothingIsRequested) {
    const std::string get = "hark-model get tiny --from http://127.0.0.1:1";
    for (const char* value : {"1", "yes"})
        expect_fails(shell("HARK_OFFLINE=" + std::string(value) + " " + get), 1,
                     "not requested, because HARK_OFFLINE is set; unset it to use the network");
    for (const char* value : {"0", ""}) {
        const ProcessResult tried =
            shell("HARK_OFFLINE=" + std::string(value) + " timeout 2 " + get);
        EXPECT_EQ(tried.err.find("HARK_OFFLINE"), std::string::npos) << tried.err;
    }
    EXPECT_EQ(shell("HARK_OFFLINE=1 hark-model list").exit_code, 0);
}

TEST_F(Offline, OnlyServersOfThisMachineAreAsked) {
    const std::string ask = "HARK_OFFLINE=1 hark transcribe '" + kSample + "' --server ";
    for (const char* there : {"http://192.0.2.1:9", "https://localhost.example.com"})
        expect_fails(shell(ask + there), 1,
                     std::string(there) + ": not asked, because HARK_OFFLINE is set");
    for (const char* here : {"http://127.0.0.1:1", "unix:/nowhere/socket"})
        expect_fails(shell(ask + here), 1, std::string(here) + ": cannot connect");
    for (const char* program : {"curl", "jq", "flock", "column"})
        if (!has_command(program)) GTEST_SKIP() << "hark lambda needs " << program;
    expect_fails(shell("HARK_OFFLINE=1 hark lambda status"), 1,
                 "api/v1: not asked, because HARK_OFFLINE is set");
}
