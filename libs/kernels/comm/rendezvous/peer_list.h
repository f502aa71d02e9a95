// The ranks that have connected to rank 0.
#pragma once

#include <string>
#include <vector>

#include "kernels/comm/rendezvous/trusted_socket.h"
#include "kernels/comm/rendezvous/wait_notice.h"

namespace hark {

// What a rank says of itself to rank 0.
struct Peer {
    int rank = 0, ranks = 0;
    int port = 0;         // at which the ranks above it connect to it
    std::string machine;  // equal on one machine
    std::string version;  // of hark
    std::string address;  // as rank 0 sees it

    std::string as_text() const;
    static Peer from_text(const std::string& text);  // throws Error
};

// Rank 0's side: accepts ranks until all are connected.
class PeerList {
  public:
    PeerList(int ranks, std::string token);

    // Waits for all ranks. Throws Error, which all that are connected are told too.
    void fill(const TcpSocket& listener, std::chrono::seconds timeout, WaitNotice& notice);
    // Sends all ranks the addresses of all. Returns the ranks; [0] is `own`.
    std::vector<Peer> send_table(const Peer& own);
    // The connection to a rank.
    TcpSocket take(int rank) { return at(rank).connection.take(); }

  private:
    struct Entry {
        TrustedSocket connection;
        Peer peer;
    };
    Entry& at(int rank) { return entries_[static_cast<size_t>(rank)]; }

    void accept(TcpSocket socket);
    std::string refusal_of(const Peer& peer);
    void drop_closed();
    std::vector<int> missing() const;
    [[noreturn]] void end(const std::string& why);

    std::string token_, refused_;  // the last one that was refused, and why
    std::vector<Entry> entries_;   // [0] is not used
};

// What rank 0 answers: where all ranks are, or an error.
std::string table_as_text(const std::vector<Peer>& peers);
// Throws Error with rank 0's error.
std::vector<Peer> table_from_text(const std::string& text);

// "rank 2", "ranks 1, 3 and 4".
std::string names_of(const std::vector<int>& ranks);

}  // namespace hark
