// The ranks that have come to rank 0.
#pragma once

#include <string>
#include <vector>

#include "kernels/comm/rendezvous/trusted_socket.h"

namespace hark {

// What a rank says of itself to rank 0.
struct Guest {
    int rank = 0, ranks = 0;
    int port = 0;         // at which the ranks above it connect to it
    std::string machine;  // equal on one machine
    std::string version;  // of hark
    std::string address;  // as rank 0 sees it

    std::string as_text() const;
    static Guest from_text(const std::string& text);  // throws Error
};

// Rank 0's side: takes ranks until all are there.
class GuestList {
  public:
    GuestList(int ranks, std::string token);

    // Waits for all ranks until the deadline. Throws Error, which all that have come are told too.
    void fill(const TcpSocket& listener, Deadline deadline);
    // Tells all where all are. Returns the ranks; [0] is `own`.
    std::vector<Guest> introduce(const Guest& own);
    // The connection to a rank.
    TcpSocket take(int rank) { return at(rank).connection.take(); }

  private:
    struct Entry {
        TrustedSocket connection;
        Guest guest;
    };
    Entry& at(int rank) { return entries_[static_cast<size_t>(rank)]; }

    void admit(TcpSocket socket);
    std::string refusal_of(const Guest& guest);
    void forget_those_that_left();
    std::string missing() const;
    [[noreturn]] void end(const std::string& why);

    std::string token_, refused_;  // the last one that was refused, and why
    std::vector<Entry> entries_;   // [0] is not used
};

// What rank 0 answers: where all ranks are, or an error.
std::string table_as_text(const std::vector<Guest>& guests);
// Throws Error with rank 0's error.
std::vector<Guest> table_from_text(const std::string& text);

// "rank 2", "ranks 1, 3 and 4".
std::string names_of(const std::vector<int>& ranks);

}  // namespace hark
