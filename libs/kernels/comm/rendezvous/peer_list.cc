#include "kernels/comm/rendezvous/peer_list.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/cli/version.h"
#include "core/error.h"
#include "core/json/json.h"
#include "kernels/comm/rendezvous/acceptor.h"

namespace hark {
namespace {

using Json = nlohmann::json;
using std::chrono::seconds;

Json parsed(const std::string& text) {
    Json json = parse_json(text, "a rank's message");
    require(json.is_object(), "a rank's message is no object");
    return json;
}

Json as_json(const Peer& peer) {
    return {{"rank", peer.rank},       {"ranks", peer.ranks},     {"port", peer.port},
            {"machine", peer.machine}, {"version", peer.version}, {"address", peer.address}};
}

Peer peer_of(const Json& json) {
    try {
        return {.rank = json.at("rank").get<int>(),
                .ranks = json.at("ranks").get<int>(),
                .port = json.at("port").get<int>(),
                .machine = json.at("machine").get<std::string>(),
                .version = json.at("version").get<std::string>(),
                .address = json.at("address").get<std::string>()};
    } catch (const Json::exception&) {
        fail("a rank's message lacks a part");
    }
}

// Whether the other end has closed, or the connection has failed: a rank that waits for the table
// sends nothing.
bool is_closed(const TcpSocket& socket) {
    char byte;
    return ::recv(socket.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
           (errno != EAGAIN && errno != EINTR);
}

}  // namespace

std::string Peer::as_text() const { return as_json(*this).dump(); }
Peer Peer::from_text(const std::string& text) { return peer_of(parsed(text)); }

std::string table_as_text(const std::vector<Peer>& peers) {
    Json list = Json::array();
    for (const Peer& peer : peers) list.push_back(as_json(peer));
    return Json{{"ranks", std::move(list)}}.dump();
}

std::vector<Peer> table_from_text(const std::string& text) {
    const Json json = parsed(text);
    if (const auto error = json.find("error"); error != json.end() && error->is_string())
        fail(error->get<std::string>());
    std::vector<Peer> peers;
    for (const Json& peer : json.value("ranks", Json::array())) peers.push_back(peer_of(peer));
    return peers;
}

std::string names_of(const std::vector<int>& ranks) {
    std::string names = ranks.size() == 1 ? "rank " : "ranks ";
    for (size_t i = 0; i < ranks.size(); ++i)
        names += concat(i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
    return names;
}

PeerList::PeerList(int ranks, std::string token) : token_(std::move(token)) {
    entries_.resize(static_cast<size_t>(ranks));
}

void PeerList::fill(const TcpSocket& listener, seconds timeout, WaitNotice& notice) {
    const Deadline deadline = deadline_in(timeout);
    Acceptor acceptor(listener);
    while (true) {
        drop_closed();
        const std::vector<int> ranks = missing();
        if (ranks.empty()) return;
        if (std::chrono::steady_clock::now() >= deadline)
            end(concat(names_of(ranks), " of ", entries_.size(), " did not connect within ",
                       timeout.count(), " s", refused_.empty() ? "" : "; ", refused_));
        notice.say("waiting for " + names_of(ranks));
        std::vector<int> connected;
        for (const Entry& entry : entries_)
            if (entry.connection.socket().is_open())
                connected.push_back(entry.connection.socket().fd());
        TcpSocket socket = acceptor.next(std::min(deadline, notice.next()), connected);
        if (socket.is_open()) accept(std::move(socket));
    }
}

void PeerList::accept(TcpSocket socket) {
    std::string address, error;
    bool is_for_all = false;
    try {
        address = socket.peer_address();  // none if the connection was reset
        TrustedSocket connection(std::move(socket), TrustedSocket::Side::listener, token_,
                                 deadline_in(kGreetingTimeout));
        Peer peer = Peer::from_text(connection.receive(deadline_in(kMessageTimeout)));
        peer.address = address;
        drop_closed();  // it may be one that was started again
        error = refusal_of(peer);
        if (error.empty()) {
            keep_connected(connection.socket());
            at(peer.rank) = {std::move(connection), peer};
            return;
        }
        is_for_all = peer.ranks != static_cast<int>(entries_.size()) || peer.version != kVersion;
        connection.send(Json{{"error", error}}.dump(), deadline_in(kMessageTimeout));
    } catch (const Error& failed) {
        if (address.empty()) return;
        if (error.empty()) error = failed.what();
    }
    refused_ = concat("a process at ", address, " was refused: ", error);
    if (is_for_all) end(refused_);
}

std::string PeerList::refusal_of(const Peer& peer) {
    const auto ranks = static_cast<int>(entries_.size());
    if (peer.ranks != ranks)
        return concat("rank ", peer.rank, " was started for ", peer.ranks, " ranks, rank 0 for ",
                      ranks);
    if (peer.version != kVersion)
        return concat("rank ", peer.rank, " is hark ", peer.version, ", rank 0 is ", kVersion);
    if (peer.rank <= 0 || peer.rank >= ranks)
        return concat("rank ", peer.rank, ": rank 0 waits for the ranks 1 to ", ranks - 1);
    if (at(peer.rank).connection.socket().is_open())
        return concat("rank ", peer.rank, " is already connected, from ",
                      at(peer.rank).peer.address, "; each process needs its own --rank");
    return "";
}

void PeerList::drop_closed() {
    for (Entry& entry : entries_)
        if (entry.connection.socket().is_open() && is_closed(entry.connection.socket()))
            entry = Entry();
}

std::vector<int> PeerList::missing() const {
    std::vector<int> ranks;
    for (size_t rank = 1; rank < entries_.size(); ++rank)
        if (!entries_[rank].connection.socket().is_open()) ranks.push_back(static_cast<int>(rank));
    return ranks;
}

void PeerList::end(const std::string& why) {
    const Deadline soon = deadline_in(kMessageTimeout);
    for (Entry& entry : entries_) {
        if (!entry.connection.socket().is_open()) continue;
        try {
            entry.connection.send(Json{{"error", why}}.dump(), soon);
        } catch (const Error&) {  // it was closed
        }
    }
    fail(why);
}

std::vector<Peer> PeerList::send_table(const Peer& own) {
    std::vector<Peer> peers = {own};
    for (size_t rank = 1; rank < entries_.size(); ++rank) peers.push_back(entries_[rank].peer);
    const std::string table = table_as_text(peers);
    const Deadline soon = deadline_in(kMessageTimeout);
    for (size_t rank = 1; rank < entries_.size(); ++rank) {
        try {
            entries_[rank].connection.send(table, soon);
        } catch (const Error& error) {
            fail("rank ", rank, ": ", error.what());
        }
    }
    return peers;
}

}  // namespace hark
