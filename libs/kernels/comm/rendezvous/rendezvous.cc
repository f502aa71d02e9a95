#include "kernels/comm/rendezvous/rendezvous.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/privacy.h"
#include "core/version.h"
#include "kernels/comm/rendezvous/guest_list.h"
#include "kernels/comm/socket_links.h"

namespace hark {
namespace {

using Side = TrustedSocket::Side;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kOneTry(5);  // for a connection
constexpr milliseconds kBetweenTries(100);
constexpr seconds kLinking(60);  // for all pairs, once all ranks have come
constexpr size_t kShortestToken = 16;

Deadline in(auto time) { return std::chrono::steady_clock::now() + time; }

std::string machine_name() {
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    std::string boot;
    try {
        boot = read_file_or_pipe("/proc/sys/kernel/random/boot_id", 100);
    } catch (const Error&) {  // the host's name must do
    }
    return host + (" " + boot.substr(0, boot.find('\n')));
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

// The meeting's file: where rank 0 waits, and the token.
struct Invitation {
    std::vector<std::string> addresses;
    std::string port, token;

    void write(const std::string& file) const {
        const std::string text =
            nlohmann::json{{"addresses", addresses}, {"port", port}, {"token", token}}.dump();
        AtomicFile out(file);
        require(::fchmod(out.fd(), 0600) == 0, file, ": cannot make it private");
        out.write(text + "\n");
        out.commit();
    }
    static Invitation read(const std::string& file) {
        const nlohmann::json json = parse_json(read_file(file, 1 << 20), file);
        try {
            return {json.at("addresses").get<std::vector<std::string>>(),
                    json.at("port").get<std::string>(), json.at("token").get<std::string>()};
        } catch (const nlohmann::json::exception&) {
            fail(file, ": expected what rank 0 writes there");
        }
    }
};

class Rendezvous {
  public:
    explicit Rendezvous(const RendezvousOptions& options)
        : options_(options), address_(options.address()), deadline_(in(seconds(options.timeout))) {
        std::tie(rank_, ranks_) = options.place();
        if (address_) token_ = given_token(options.token_file);
        sockets_.resize(static_cast<size_t>(ranks_));
    }

    std::unique_ptr<Transport> transport() {
        const std::vector<Guest> guests = rank_ == 0 ? as_first() : as_another();
        const std::string& machine = guests[static_cast<size_t>(rank_)].machine;
        const auto local = std::count_if(guests.begin(), guests.begin() + rank_,
                                         [&](const Guest& g) { return g.machine == machine; });
        std::vector<int> sockets;
        for (TcpSocket& socket : sockets_) sockets.push_back(socket.release());
        return socket_links(rank_, std::move(sockets), static_cast<int>(local));
    }

  private:
    Guest self(int port) const { return {rank_, ranks_, port, machine_name(), kVersion, ""}; }
    TcpSocket& link(int rank) { return sockets_[static_cast<size_t>(rank)]; }

    std::vector<Guest> as_first() {
        const TcpSocket listener = first_listener();
        if (!address_) {
            token_ = random_token();
            Invitation{machine_addresses(), std::to_string(listener.own_port()), token_}.write(
                options_.where);
        }
        GuestList list(ranks_, token_);
        try {
            list.fill(listener, deadline_);
        } catch (const Error&) {
            forget_invitation();
            throw;
        }
        forget_invitation();
        std::vector<Guest> guests = list.introduce(self(0));
        for (int rank = 1; rank < ranks_; ++rank) link(rank) = list.take(rank);
        return guests;
    }

    TcpSocket first_listener() const {
        if (!address_) return listen_at("", "0");
        try {
            return listen_at(address_->first, address_->second);
        } catch (const Error& error) {
            fail(options_.where, ": cannot listen on it: ", error.what());
        }
    }

    void forget_invitation() const {
        std::error_code ignored;
        if (!address_) std::filesystem::remove(options_.where, ignored);
    }

    static std::string random_token() {
        std::string token;
        for (const char byte : random_bytes(32)) {
            constexpr const char* kDigits = "0123456789abcdef";
            token += kDigits[byte >> 4 & 15];
            token += kDigits[byte & 15];
        }
        return token;
    }

    std::vector<Guest> as_another() {
        TrustedSocket first = reach_first();
        // Where rank 0's network is; the ranks above this one connect to it.
        const TcpSocket listener = listen_at(first.socket().own_address(), "0");
        std::vector<Guest> guests;
        try {
            first.send(self(listener.own_port()).as_text(), in(kOneTry));
            // Rank 0 says at its own deadline who is missing.
            guests = table_from_text(first.receive(deadline_ + 2 * kOneTry));
        } catch (const WrongToken&) {
            fail(options_.where, ": rank 0 has another token");
        } catch (const Error& error) {
            fail("rank 0: ", error.what());
        }
        require(static_cast<int>(guests.size()) == ranks_, "rank 0: ", guests.size(), " ranks");
        keep_connected(first.socket());
        link(0) = first.take();
        for (int rank = 1; rank < rank_; ++rank) link(rank) = call(guests, rank);
        answer_others(listener);
        return guests;
    }

    // Tries until the deadline: rank 0 may start last, and an old file may be there.
    TrustedSocket reach_first() {
        std::string why;
        do {
            try {
                const Invitation to = address_
                                          ? Invitation{{address_->first}, address_->second, token_}
                                          : Invitation::read(options_.where);
                for (const std::string& host : to.addresses) {
                    try {
                        return greet_first(host, to);
                    } catch (const Error& error) {
                        why = error.what();
                    }
                }
            } catch (const Error& error) {
                why = error.what();
            }
            wait_readable({}, in(kBetweenTries));
        } while (std::chrono::steady_clock::now() < deadline_);
        fail("rank 0 was not found within ", options_.timeout, " s: ", why);
    }

    TrustedSocket greet_first(const std::string& host, const Invitation& to) {
        const Deadline soon = std::min(deadline_, in(kOneTry));
        try {
            TrustedSocket first(connect_to(host, to.port, soon), Side::caller, to.token, soon);
            token_ = to.token;
            return first;
        } catch (const Error& error) {
            fail(host, ":", to.port, ": ", error.what());
        }
    }

    TcpSocket call(const std::vector<Guest>& guests, int rank) {
        const Guest& guest = guests[static_cast<size_t>(rank)];
        const Deadline soon = in(kLinking);
        try {
            TrustedSocket other(connect_to(guest.address, std::to_string(guest.port), soon),
                                Side::caller, token_, soon);
            other.send(std::to_string(rank_), soon);
            require(other.receive(soon) == std::to_string(rank), "another process answers");
            keep_connected(other.socket());
            return other.take();
        } catch (const Error& error) {
            fail("cannot reach rank ", rank, " at ", guest.address, ":", guest.port, ": ",
                 error.what());
        }
    }

    // Takes the connections of the ranks above this one. Others are dropped.
    void answer_others(const TcpSocket& listener) {
        const Deadline end = in(kLinking);
        while (true) {
            std::vector<int> missing;
            for (int rank = rank_ + 1; rank < ranks_; ++rank)
                if (!link(rank).is_open()) missing.push_back(rank);
            if (missing.empty()) return;
            TcpSocket socket = accept_at(listener, end);
            require(socket.is_open(), names_of(missing), " did not connect to this one at ",
                    listener.own_address(), ":", listener.own_port(), " within ", kLinking.count(),
                    " s");
            try {
                const Deadline soon = in(kOneTry);
                TrustedSocket other(std::move(socket), Side::listener, token_, soon);
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
    int rank_ = 0, ranks_ = 1;
    std::string token_;
    std::vector<TcpSocket> sockets_;  // to each rank
};

}  // namespace

std::unique_ptr<Transport> rendezvous_transport(const RendezvousOptions& options) {
    const auto [rank, ranks] = options.place();
    if (ranks == 1) return nullptr;
    try {
        require(!is_offline(), options.where,
                ": not used, because HARK_OFFLINE is set; unset it to use the network");
        return Rendezvous(options).transport();
    } catch (const UsageError&) {
        throw;
    } catch (const Error& error) {
        fail("rank ", rank, ": rendezvous: ", error.what());
    }
}

}  // namespace hark
