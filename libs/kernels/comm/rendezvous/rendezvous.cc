#include "kernels/comm/rendezvous/rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>
#include <vector>

#include "core/cli/version.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/machine/loopback.h"
#include "core/profile/process_info.h"
#include "core/sandbox/privacy.h"
#include "kernels/comm/rendezvous/acceptor.h"
#include "kernels/comm/rendezvous/peer_list.h"
#include "kernels/comm/rendezvous/rendezvous_file.h"
#include "kernels/comm/rendezvous/wait_notice.h"
#include "kernels/comm/socket_links.h"

namespace hark {
namespace {

using Side = TrustedSocket::Side;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kConnecting(5);
constexpr seconds kGreetingOfRank0(30);  // rank 0 serves one connection at a time
constexpr seconds kAfterAnotherRun(1);
constexpr milliseconds kBetweenTries(100);
constexpr seconds kLinking(60);  // for all pairs, once all ranks are connected to rank 0
constexpr size_t kShortestToken = 16;

std::string machine_name() {
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    return host + (" " + boot_id());
}

// The token that all processes were given.
std::string given_token(const std::string& file) {
    const char* const variable = std::getenv("HARK_RENDEZVOUS_TOKEN");
    const std::string where = file.empty() ? "HARK_RENDEZVOUS_TOKEN" : file;
    std::string token = !file.empty()         ? read_file_or_pipe(file, 1 << 16)
                        : variable != nullptr ? variable
                                              : "";
    constexpr const char* kSpace = " \t\r\n";
    token.erase(token.find_last_not_of(kSpace) + 1);
    require(!token.empty() || !file.empty(),
            "--rendezvous tcp:// needs --token-file FILE, or HARK_RENDEZVOUS_TOKEN");
    require(token.size() >= kShortestToken, where, ": expected a token of ", kShortestToken,
            " characters or more, got ", token.size(), "; make one: openssl rand -hex 32");
    return token;
}

std::string random_token() {
    std::string token;
    for (const char byte : random_bytes(32)) {
        constexpr const char* kDigits = "0123456789abcdef";
        token += kDigits[byte >> 4 & 15];
        token += kDigits[byte & 15];
    }
    return token;
}

class Rendezvous {
  public:
    Rendezvous(const RendezvousOptions& options, WaitNotice notice)
        : options_(options),
          address_(options.address()),
          deadline_(deadline_in(seconds(options.timeout))),
          notice_(std::move(notice)) {
        std::tie(rank_, ranks_) = options.place();
        if (address_) token_ = given_token(options.token_file);
        sockets_.resize(static_cast<size_t>(ranks_));
    }

    std::unique_ptr<Transport> transport() {
        const std::vector<Peer> peers = rank_ == 0 ? as_first() : as_another();
        const std::string& machine = peers[static_cast<size_t>(rank_)].machine;
        const auto local = std::count_if(peers.begin(), peers.begin() + rank_,
                                         [&](const Peer& g) { return g.machine == machine; });
        std::vector<int> sockets;
        for (TcpSocket& socket : sockets_) sockets.push_back(socket.release());
        return socket_links(rank_, std::move(sockets), static_cast<int>(local));
    }

  private:
    Peer self(int port) const { return {rank_, ranks_, port, machine_name(), kVersion, ""}; }
    TcpSocket& link(int rank) { return sockets_[static_cast<size_t>(rank)]; }

    std::vector<Peer> as_first() {
        const TcpSocket listener = first_listener();
        RendezvousFile file;
        if (!address_) {
            token_ = random_token();
            file = {machine_addresses(), std::to_string(listener.own_port()), token_};
            file.write(options_.where);
        }
        const auto remove_file = [&] {
            if (!address_) file.remove(options_.where);
        };
        PeerList list(ranks_, token_);
        try {
            list.fill(listener, seconds(options_.timeout), notice_);
        } catch (const Error&) {
            remove_file();
            throw;
        }
        remove_file();
        std::vector<Peer> peers = list.send_table(self(0));
        for (int rank = 1; rank < ranks_; ++rank) link(rank) = list.take(rank);
        return peers;
    }

    TcpSocket first_listener() const {
        if (!address_) return listen_at("", "0");
        const auto& [host, port] = *address_;
        try {
            TcpSocket listener = listen_at(host, port);
            const std::string own = listener.own_address();
            require(is_loopback(host) || !is_loopback(own), host, " is ", own,
                    " on this machine, which no other one reaches (see /etc/hosts); write an "
                    "address of its network");
            return listener;
        } catch (const Error& error) {
            fail(options_.where, ": cannot listen on it: ", error.what());
        }
    }

    std::vector<Peer> as_another() {
        TcpSocket listener;
        const std::string table = ask_first(listener);
        std::vector<Peer> peers;
        try {
            peers = table_from_text(table);
        } catch (const Error& error) {
            fail("rank 0: ", error.what());
        }
        require(static_cast<int>(peers.size()) == ranks_, "rank 0: ", peers.size(), " ranks");
        for (int rank = 1; rank < rank_; ++rank) link(rank) = connect_rank(peers, rank);
        accept_others(listener);
        return peers;
    }

    // Sends rank 0 this process's port, and returns the answer.
    std::string ask_first(TcpSocket& listener) {
        while (true) {
            TrustedSocket first = reach_first();
            // Where rank 0's network is; the ranks above this one connect to it.
            listener = listen_at(first.socket().own_address(), "0");
            try {
                keep_connected(first.socket());
                first.send(self(listener.own_port()).as_text(), deadline_in(kMessageTimeout));
                // Rank 0 says at its own deadline who is missing.
                const Deadline end = deadline_ + 2 * kMessageTimeout;
                while (
                    wait_readable({first.socket().fd()}, std::min(end, notice_.next())).empty() &&
                    std::chrono::steady_clock::now() < end)
                    notice_.say("connected to rank 0; waiting for other ranks");
                std::string answer = first.receive(end);
                link(0) = first.take();
                return answer;
            } catch (const WrongToken&) {
                // A file that is left over may have a port that another run uses now.
                if (address_ || std::chrono::steady_clock::now() >= deadline_)
                    fail(options_.where, ": rank 0 has another token");
                wait_readable({}, deadline_in(kAfterAnotherRun));
            } catch (const Error& error) {
                fail("rank 0: ", error.what());
            }
        }
    }

    // Tries until the deadline: rank 0 may start last, and an old file may be there.
    TrustedSocket reach_first() {
        std::string why;
        do {
            try {
                const RendezvousFile to =
                    address_ ? RendezvousFile{{address_->first}, address_->second, token_}
                             : RendezvousFile::read(options_.where);
                for (const std::string& host : to.addresses) {
                    try {
                        return connect_first(host, to);
                    } catch (const Error& error) {
                        why = error.what();
                    }
                }
            } catch (const Error& error) {
                why = error.what();
            }
            notice_.say("waiting for rank 0: " + why);
            wait_readable({}, deadline_in(kBetweenTries));
        } while (std::chrono::steady_clock::now() < deadline_);
        fail("rank 0 was not found within ", options_.timeout, " s: ", why);
    }

    TrustedSocket connect_first(const std::string& host, const RendezvousFile& to) {
        try {
            TcpSocket socket =
                connect_to(host, to.port, std::min(deadline_, deadline_in(kConnecting)));
            TrustedSocket first(std::move(socket), Side::caller, to.token,
                                std::min(deadline_, deadline_in(kGreetingOfRank0)));
            token_ = to.token;
            return first;
        } catch (const Error& error) {
            fail(host, ":", to.port, ": ", error.what());
        }
    }

    TcpSocket connect_rank(const std::vector<Peer>& peers, int rank) {
        const Peer& peer = peers[static_cast<size_t>(rank)];
        const Deadline soon = deadline_in(kLinking);
        try {
            TrustedSocket other(connect_to(peer.address, std::to_string(peer.port), soon),
                                Side::caller, token_, soon);
            other.send(std::to_string(rank_), soon);
            require(other.receive(soon) == std::to_string(rank), "another process answers");
            keep_connected(other.socket());
            return other.take();
        } catch (const Error& error) {
            fail("cannot reach rank ", rank, " at ", peer.address, ":", peer.port, ": ",
                 error.what());
        }
    }

    // Takes the connections of the ranks above this one. Others are dropped.
    void accept_others(const TcpSocket& listener) {
        const Deadline end = deadline_in(kLinking);
        Acceptor acceptor(listener);
        while (true) {
            std::vector<int> missing;
            for (int rank = rank_ + 1; rank < ranks_; ++rank)
                if (!link(rank).is_open()) missing.push_back(rank);
            if (missing.empty()) return;
            TcpSocket socket = acceptor.next(end);
            require(socket.is_open(), names_of(missing), " did not connect to this one at ",
                    listener.own_address(), ":", listener.own_port(), " within ", kLinking.count(),
                    " s");
            try {
                TrustedSocket other(std::move(socket), Side::listener, token_,
                                    deadline_in(kGreetingTimeout));
                const Deadline soon = deadline_in(kMessageTimeout);
                const std::string name = other.receive(soon);
                const auto rank = std::find_if(missing.begin(), missing.end(), [&](int number) {
                    return std::to_string(number) == name;
                });
                if (rank == missing.end()) continue;
                other.send(std::to_string(rank_), soon);
                keep_connected(other.socket());
                link(*rank) = other.take();
            } catch (const Error&) {  // no rank of this run
            }
        }
    }

    const RendezvousOptions& options_;
    std::optional<std::pair<std::string, std::string>> address_;
    Deadline deadline_;
    WaitNotice notice_;
    int rank_ = 0, ranks_ = 1;
    std::string token_;
    std::vector<TcpSocket> sockets_;  // to each rank
};

}  // namespace

std::unique_ptr<Transport> rendezvous_transport(
    const RendezvousOptions& options, const std::function<void(const std::string&)>& notice) {
    const auto place = options.place();
    const int rank = place.first, ranks = place.second;
    if (ranks == 1) return nullptr;
    try {
        require(!is_offline(), options.where,
                ": not used, because HARK_OFFLINE is set; unset it to use the network");
        const auto print = [&](const std::string& text) {
            notice(concat("rank ", rank, ": ", text));
        };
        return Rendezvous(options, WaitNotice(print)).transport();
    } catch (const UsageError&) {
        throw;
    } catch (const Error& error) {
        fail("rank ", rank, ": rendezvous: ", error.what());
    }
}

}  // namespace hark
