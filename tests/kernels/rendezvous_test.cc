// Processes that find one another by TCP: here threads, each of which is one.
#include "kernels/comm/rendezvous/rendezvous.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "kernels/comm/communicator.h"
#include "kernels/comm/rendezvous/peer_list.h"
#include "kernels/comm/rendezvous/rendezvous_file.h"
#include "support/expect.h"
#include "support/process.h"

using namespace hark;
using namespace hark::test;

namespace {

constexpr const char* kToken = "0123456789abcdef";

std::string free_port() { return std::to_string(listen_at("127.0.0.1", "0").own_port()); }

void no_notice(const std::string& /*text*/) {}

Deadline soon() { return deadline_in(std::chrono::seconds(20)); }

// What a rank ends with: nothing, or its error.
struct Outcome {
    std::string error;
    int local_rank = -1;
};

// Ranks as threads; those of one run have the same `where`.
class Ranks {
  public:
    using Body = std::function<void(std::unique_ptr<Transport>)>;

    void start(const RendezvousOptions& options, const Body& body = nullptr) {
        outcomes_.push_back(std::make_unique<Outcome>());
        threads_.emplace_back([options, body, outcome = outcomes_.back().get()] {
            try {
                std::unique_ptr<Transport> links = rendezvous_transport(options, no_notice);
                outcome->local_rank = links->local_rank();
                if (body) body(std::move(links));
            } catch (const std::exception& error) {
                outcome->error = error.what();
            }
        });
    }
    std::vector<std::unique_ptr<Outcome>>& end() {
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
        return outcomes_;
    }

  private:
    std::vector<std::unique_ptr<Outcome>> outcomes_;
    std::vector<std::thread> threads_;
};

class RendezvousTest : public testing::Test {
  protected:
    RendezvousTest() { write_text(token(), std::string(kToken) + "\n"); }

    std::filesystem::path token() const { return folder_.path() / "token"; }
    std::filesystem::path file() const { return folder_.path() / "meeting"; }
    RendezvousOptions tcp(int64_t rank, int64_t ranks, int64_t timeout = 60) const {
        return {"tcp://127.0.0.1:" + port_, rank, ranks, token().string(), timeout};
    }
    RendezvousOptions by_file(int64_t rank, int64_t ranks) const {
        return {file().string(), rank, ranks, "", 60};
    }

    // A connection to the rank at port_, once it accepts.
    TcpSocket connected() const {
        while (true) {
            try {
                return connect_to("127.0.0.1", port_, soon());
            } catch (const Error&) {
                std::this_thread::yield();
            }
        }
    }

    TemporaryDirectory folder_;
    std::string port_ = free_port();
};

void add_up(std::unique_ptr<Transport> links) {
    Context ctx(1);
    const int rank = links->rank();
    const std::unique_ptr<Communicator> ranks = cpu_ranks(std::move(links));
    // More than what a socket's buffers hold.
    std::vector<float> values(1 << 20, static_cast<float>(rank + 1));
    ranks->all_reduce(ctx, Tensor(values.data(), Dtype::f32, {std::ssize(values)}));
    for (const float value : values)
        require(value == static_cast<float>(ranks->size() * (ranks->size() + 1) / 2),
                "found a sum of ", value);
    ranks->finish();
}

}  // namespace

TEST_F(RendezvousTest, ByAddressOrFileAllAreLinked) {
    for (const bool with_file : {false, true}) {
        Ranks ranks;
        // A file that is left over: no server is there.
        if (with_file) write_text(file(), R"({"addresses":["127.0.0.1"],"port":"1","token":"x"})");
        for (const int rank : {3, 1, 0, 2})
            ranks.start(with_file ? by_file(rank, 4) : tcp(rank, 4), add_up);
        for (const auto& outcome : ranks.end()) {
            EXPECT_EQ(outcome->error, "");
            EXPECT_GE(outcome->local_rank, 0);
        }
        EXPECT_FALSE(std::filesystem::exists(file()));
    }
}

TEST_F(RendezvousTest, TheFileIsPrivate) {
    Ranks ranks;
    ranks.start(by_file(0, 2), add_up);
    while (!std::filesystem::exists(file())) std::this_thread::yield();
    struct stat found {};
    ASSERT_EQ(::stat(file().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600u);
    ranks.start(by_file(1, 2), add_up);
    for (const auto& outcome : ranks.end()) EXPECT_EQ(outcome->error, "");
}

TEST_F(RendezvousTest, RanksThatDoNotConnectAreNamed) {
    Ranks ranks;
    for (const int rank : {0, 2}) ranks.start(tcp(rank, 4, 1));
    const auto& ends = ranks.end();
    EXPECT_EQ(ends[0]->error, "rank 0: rendezvous: ranks 1 and 3 of 4 did not connect within 1 s");
    EXPECT_EQ(ends[1]->error,
              "rank 2: rendezvous: rank 0: ranks 1 and 3 of 4 did not connect within 1 s");
    ranks.start(tcp(1, 4, 1));
    expect_contains(ranks.end()[2]->error,
                    "rank 1: rendezvous: rank 0 was not found within 1 s: 127.0.0.1:" + port_ +
                        ": Connection refused");
}

TEST_F(RendezvousTest, AnotherTokenIsRefused) {
    const std::filesystem::path other = folder_.path() / "other";
    write_text(other, "fedcba9876543210");
    RendezvousOptions wrong = tcp(1, 2, 2);
    wrong.token_file = other.string();
    Ranks ranks;
    ranks.start(tcp(0, 2, 2));
    ranks.start(wrong);
    const auto& ends = ranks.end();
    EXPECT_EQ(ends[1]->error, "rank 1: rendezvous: " + wrong.where + ": rank 0 has another token");
    EXPECT_EQ(
        ends[0]->error,
        "rank 0: rendezvous: rank 1 of 2 did not connect within 2 s; a process at 127.0.0.1 was "
        "refused: the token is another one");
}

TEST_F(RendezvousTest, AnotherNumberOfRanksEndsAll) {
    Ranks ranks;
    ranks.start(tcp(0, 3));
    ranks.start(tcp(1, 3));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ranks.start(tcp(2, 4));
    for (const auto& outcome : ranks.end())
        expect_contains(outcome->error, "rank 2 was started for 4 ranks, rank 0 for 3");
}

TEST_F(RendezvousTest, ATakenRankIsRefused) {
    Ranks ranks;
    ranks.start(tcp(0, 3), add_up);
    ranks.start(tcp(1, 3), add_up);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    Ranks second;
    second.start(tcp(1, 3));
    EXPECT_EQ(
        second.end()[0]->error,
        "rank 1: rendezvous: rank 0: rank 1 is already connected, from 127.0.0.1; each process "
        "needs its own --rank");
    ranks.start(tcp(2, 3), add_up);
    for (const auto& outcome : ranks.end()) EXPECT_EQ(outcome->error, "");
}

// Whoever connects without being a rank, and a rank that ends while it waits and comes again.
TEST_F(RendezvousTest, StrangersAndThoseThatLeftAreForgotten) {
    Ranks ranks;
    ranks.start(tcp(0, 2), add_up);
    {
        const TcpSocket stranger = connected();
        const std::string text = "GET / HTTP/1.1\r\nHost: a-place-of-no-rendezvous\r\n\r\n";
        stranger.send(std::as_bytes(std::span(text.data(), text.size())), soon());
    }
    {
        TrustedSocket left(connected(), TrustedSocket::Side::caller, kToken, soon());
        left.send(Peer{1, 2, 1, "m", "0", ""}.as_text(), soon());
        expect_contains(left.receive(soon()), "error");  // of another version
    }
    for (const auto& outcome : ranks.end()) expect_contains(outcome->error, "rank 1 is hark 0, ");
}

TEST_F(RendezvousTest, AConnectionThatIsResetIsDropped) {
    Ranks ranks;
    ranks.start(tcp(0, 2), add_up);
    for (int i = 0; i < 20; ++i) {
        const TcpSocket socket = connected();
        const linger reset = {.l_onoff = 1, .l_linger = 0};
        ASSERT_EQ(::setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    }
    ranks.start(tcp(1, 2), add_up);
    for (const auto& outcome : ranks.end()) EXPECT_EQ(outcome->error, "");
}

// One at a time they would take longer than the ranks wait.
TEST_F(RendezvousTest, SilentConnectionsDelayNoRank) {
    Ranks ranks;
    ranks.start(tcp(0, 2, 10), add_up);
    std::vector<TcpSocket> silent;
    for (int i = 0; i < 100; ++i) silent.push_back(connected());
    const TcpSocket slow = connected();
    slow.send(std::as_bytes(std::span("h", 1)), soon());
    ranks.start(tcp(1, 2, 10), add_up);
    for (const auto& outcome : ranks.end()) EXPECT_EQ(outcome->error, "");
}

TEST_F(RendezvousTest, ConnectionsDoNotDeferTheDeadline) {
    Ranks ranks;
    ranks.start(tcp(0, 2, 1));
    std::atomic<bool> ended = false;
    std::thread others([&] {
        while (!ended) {
            try {
                const TcpSocket socket = connect_to("127.0.0.1", port_, soon());
                socket.send(std::as_bytes(std::span("GET / HTTP/1.1", 14)), soon());
            } catch (const Error&) {  // the rank has ended, or drops it
            }
        }
    });
    expect_contains(ranks.end()[0]->error, "rank 1 of 2 did not connect within 1 s");
    ended = true;
    others.join();
}

TEST_F(RendezvousTest, OtherFilesAreKept) {
    const auto end_of_rank_0 = [&] {
        RendezvousOptions options = by_file(0, 2);
        options.timeout = 1;
        Ranks ranks;
        ranks.start(options);
        return ranks.end()[0]->error;
    };
    for (const char* text : {"", "no JSON", R"({"addresses":[]})"}) {
        write_text(file(), text);
        expect_contains(end_of_rank_0(), "--rendezvous replaces no other file");
        EXPECT_EQ(read_text(file()), text);
    }
    // Another run writes it while rank 0 waits.
    std::filesystem::remove(file());
    const RendezvousFile other = {{"127.0.0.1"}, "1", "of-another-run"};
    std::thread writer([&] {
        while (!std::filesystem::exists(file())) std::this_thread::yield();
        other.write(file().string());
    });
    expect_contains(end_of_rank_0(), "did not connect");
    writer.join();
    EXPECT_EQ(RendezvousFile::read(file().string()).token, other.token);
}

TEST_F(RendezvousTest, AnOldFileWithThePortOfAnotherRunIsReadAgain) {
    Ranks other, ranks;
    other.start(tcp(0, 2), add_up);
    connected();
    RendezvousFile{{"127.0.0.1"}, port_, "the-token-of-an-ended-run"}.write(file().string());
    ranks.start(by_file(1, 2), add_up);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ranks.start(by_file(0, 2), add_up);
    for (const auto& outcome : ranks.end()) EXPECT_EQ(outcome->error, "");
    other.start(tcp(1, 2), add_up);
    for (const auto& outcome : other.end()) EXPECT_EQ(outcome->error, "");
}

TEST_F(RendezvousTest, ARankThatWaitsSaysForWhom) {
    std::mutex mutex;
    std::string said;
    const auto notice = [&](const std::string& text) {
        const std::lock_guard lock(mutex);
        said += text + "\n";
    };
    const auto wait = [&](const RendezvousOptions& options) {
        EXPECT_THROW(rendezvous_transport(options, notice), Error);
    };
    RendezvousOptions lost = by_file(1, 2);
    lost.timeout = 3;
    std::thread first([&] { wait(tcp(0, 3, 3)); }), second([&] { wait(tcp(2, 3, 3)); });
    wait(lost);
    first.join();
    second.join();
    expect_contains(said, "rank 0: waiting for rank 1\n");
    expect_contains(said, "rank 2: connected to rank 0; waiting for other ranks\n");
    expect_contains(said, "rank 1: waiting for rank 0: " + file().string() + ": ");
}

TEST_F(RendezvousTest, ARankThatRestartsTakesItsPlace) {
    Ranks ranks;
    ranks.start(tcp(0, 3), add_up);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    pid_t child = ::fork();
    if (child == 0) {
        try {
            rendezvous_transport(tcp(1, 3), no_notice);
        } catch (const std::exception&) {
        }
        ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ranks.start(tcp(1, 3), add_up);
    ranks.start(tcp(2, 3), add_up);
    for (const auto& outcome : ranks.end()) EXPECT_EQ(outcome->error, "");
}

TEST_F(RendezvousTest, WhatIsWrongIsSaid) {
    const auto refused = [](RendezvousOptions options, const std::string& part) {
        try {
            options.check();
            rendezvous_transport(options, no_notice);
            ADD_FAILURE() << part << ": not refused";
        } catch (const Error& error) {
            expect_contains(error.what(), part);
        }
    };
    refused({"udp://a:1", 0, 2, "", 1}, "expected tcp://HOST:PORT or a file, got 'udp://a:1'");
    refused({"tcp://host", 0, 2, "", 1}, "expected tcp://HOST:PORT or a file");
    refused({"tcp://[]:1", 0, 2, "", 1}, "expected a host, got 'tcp://[]:1'");
    refused({"host:4242", 0, 2, "", 1}, "'host:4242' is no file name; write tcp://host:4242");
    refused({"tcp://host:1", 2, 2, "", 1}, "--rank: expected 0 to 1 of 2 ranks, got 2");
    refused({"tcp://host:1", std::nullopt, 2, "", 1}, "--rendezvous needs --rank and --ranks");
    refused({"", 1, 2, "", 1}, "need --rendezvous");
    refused({"file", 1, 2, "token", 1}, "a file has its own token");
    refused({"tcp://host:1", 0, 2, "", 1}, "needs --token-file FILE, or HARK_RENDEZVOUS_TOKEN");
    write_text(token(), "short");
    refused(tcp(0, 2), "expected a token of 16 characters or more, got 5");
    ::setenv("HARK_OFFLINE", "1", 1);
    refused(tcp(0, 2), "not used, because HARK_OFFLINE is set");
    ::unsetenv("HARK_OFFLINE");
    // 192.0.2.1 is no machine's (RFC 5737).
    write_text(token(), kToken);
    RendezvousOptions elsewhere = tcp(0, 2);
    elsewhere.where = "tcp://192.0.2.1:" + port_;
    refused(elsewhere, "cannot listen on it: Cannot assign requested address");
    // As Debian's /etc/hosts has the machine's own name.
    elsewhere.where = "tcp://0x7f000101:" + port_;
    refused(elsewhere, "0x7f000101 is 127.0.1.1 on this machine, which no other one reaches");
}

TEST_F(RendezvousTest, ALaunchersRankIsTaken) {
    ::setenv("SLURM_STEP_NUM_TASKS", "3", 1);
    ::setenv("SLURM_PROCID", "2", 1);
    const RendezvousOptions options{file().string(), std::nullopt, std::nullopt, "", 1};
    EXPECT_EQ(options.place(), std::pair(2, 3));
    ::unsetenv("SLURM_PROCID");
    ::unsetenv("SLURM_STEP_NUM_TASKS");
}

TEST(NamesOfRanks, AreAList) {
    EXPECT_EQ(names_of({2}), "rank 2");
    EXPECT_EQ(names_of({1, 2}), "ranks 1 and 2");
    EXPECT_EQ(names_of({1, 2, 5}), "ranks 1, 2 and 5");
}
