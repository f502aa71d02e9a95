#include "kernels/comm/rendezvous/guest_list.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "core/version.h"

namespace hark {
namespace {

using Json = nlohmann::json;

// A connection that says nothing is dropped after this time, so that it keeps no other one waiting.
constexpr std::chrono::seconds kPatience(5);

Json parsed(const std::string& text) {
    Json json = parse_json(text, "a rank's message");
    require(json.is_object(), "a rank's message is no object");
    return json;
}

Json as_json(const Guest& guest) {
    return {{"rank", guest.rank},       {"ranks", guest.ranks},     {"port", guest.port},
            {"machine", guest.machine}, {"version", guest.version}, {"address", guest.address}};
}

Guest guest_of(const Json& json) {
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
bool has_left(const TcpSocket& socket) {
    char byte;
    return ::recv(socket.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
           (errno != EAGAIN && errno != EINTR);
}

}  // namespace

std::string Guest::as_text() const { return as_json(*this).dump(); }
Guest Guest::from_text(const std::string& text) { return guest_of(parsed(text)); }

std::string table_as_text(const std::vector<Guest>& guests) {
    Json list = Json::array();
    for (const Guest& guest : guests) list.push_back(as_json(guest));
    return Json{{"ranks", std::move(list)}}.dump();
}

std::vector<Guest> table_from_text(const std::string& text) {
    const Json json = parsed(text);
    if (const auto error = json.find("error"); error != json.end() && error->is_string())
        fail(error->get<std::string>());
    std::vector<Guest> guests;
    for (const Json& guest : json.value("ranks", Json::array())) guests.push_back(guest_of(guest));
    return guests;
}

std::string names_of(const std::vector<int>& ranks) {
    std::string names = ranks.size() == 1 ? "rank " : "ranks ";
    for (size_t i = 0; i < ranks.size(); ++i)
        names += concat(i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
    return names;
}

GuestList::GuestList(int ranks, std::string token) : token_(std::move(token)) {
    entries_.resize(static_cast<size_t>(ranks));
}

void GuestList::fill(const TcpSocket& listener, Deadline deadline) {
    while (true) {
        forget_those_that_left();
        std::vector<int> sockets = {listener.fd()};
        bool all = true;
        for (size_t rank = 1; rank < entries_.size(); ++rank) {
            const TcpSocket& socket = entries_[rank].connection.socket();
            all = all && socket.is_open();
            if (socket.is_open()) sockets.push_back(socket.fd());
        }
        if (all) return;
        if (!wait_readable(sockets, deadline)) end(missing());
        if (TcpSocket socket = accept_at(listener, std::chrono::steady_clock::now());
            socket.is_open())
            admit(std::move(socket));
    }
}

void GuestList::admit(TcpSocket socket) {
    const std::string address = socket.peer_address();
    const Deadline soon = std::chrono::steady_clock::now() + kPatience;
    std::string error;
    bool is_for_all = false;
    try {
        TrustedSocket connection(std::move(socket), TrustedSocket::Side::listener, token_, soon);
        Guest guest;
        try {
            guest = Guest::from_text(connection.receive(soon));
        } catch (const WrongToken&) {
            connection.send("", soon);  // from which it learns that the tokens differ
            throw;
        }
        guest.address = address;
        forget_those_that_left();  // it may be one that was started again
        error = refusal_of(guest);
        if (error.empty()) {
            keep_connected(connection.socket());
            at(guest.rank) = {std::move(connection), guest};
            return;
        }
        is_for_all = guest.ranks != static_cast<int>(entries_.size()) || guest.version != kVersion;
        connection.send(Json{{"error", error}}.dump(), soon);
    } catch (const Error& failed) {
        if (error.empty()) error = failed.what();
    }
    refused_ = concat("a process at ", address, " was refused: ", error);
    if (is_for_all) end(refused_);
}

std::string GuestList::refusal_of(const Guest& guest) {
    const auto ranks = static_cast<int>(entries_.size());
    if (guest.ranks != ranks)
        return concat("rank ", guest.rank, " was started for ", guest.ranks, " ranks, rank 0 for ",
                      ranks);
    if (guest.version != kVersion)
        return concat("rank ", guest.rank, " is hark ", guest.version, ", rank 0 is ", kVersion);
    if (guest.rank <= 0 || guest.rank >= ranks)
        return concat("rank ", guest.rank, ": rank 0 waits for the ranks 1 to ", ranks - 1);
    if (at(guest.rank).connection.socket().is_open())
        return concat("rank ", guest.rank, " has already come, from ", at(guest.rank).guest.address,
                      "; each process needs its own --rank");
    return "";
}

void GuestList::forget_those_that_left() {
    for (Entry& entry : entries_)
        if (entry.connection.socket().is_open() && has_left(entry.connection.socket()))
            entry = Entry();
}

std::string GuestList::missing() const {
    std::vector<int> ranks;
    for (size_t rank = 1; rank < entries_.size(); ++rank)
        if (!entries_[rank].connection.socket().is_open()) ranks.push_back(static_cast<int>(rank));
    return concat(names_of(ranks), " of ", entries_.size(), ranks.size() == 1 ? " has" : " have",
                  " not come in time", refused_.empty() ? "" : "; ", refused_);
}

void GuestList::end(const std::string& why) {
    const Deadline soon = std::chrono::steady_clock::now() + kPatience;
    for (Entry& entry : entries_) {
        if (!entry.connection.socket().is_open()) continue;
        try {
            entry.connection.send(Json{{"error", why}}.dump(), soon);
        } catch (const Error&) {  // it has left
        }
    }
    fail(why);
}

std::vector<Guest> GuestList::introduce(const Guest& own) {
    std::vector<Guest> guests = {own};
    for (size_t rank = 1; rank < entries_.size(); ++rank) guests.push_back(entries_[rank].guest);
    const std::string table = table_as_text(guests);
    const Deadline soon = std::chrono::steady_clock::now() + kPatience;
    for (size_t rank = 1; rank < entries_.size(); ++rank) {
        try {
            entries_[rank].connection.send(table, soon);
        } catch (const Error& error) {
            fail("rank ", rank, ": ", error.what());
        }
    }
    return guests;
}

}  // namespace hark
