// --rendezvous and its flags: how processes on several machines find one another without MPI.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/cli/cli.h"

namespace hark {

struct RendezvousOptions {
    std::string where;                   // tcp://HOST:PORT, or a file; empty: none
    std::optional<int64_t> rank, ranks;  // without them the launcher's
    std::string token_file;
    int64_t timeout = 600;  // seconds

    bool given() const { return !where.empty(); }
    // Host and port of tcp://HOST:PORT, an IPv6 address without its brackets; none for a file.
    // Throws UsageError for another scheme, or without a port.
    std::optional<std::pair<std::string, std::string>> address() const;
    // This process's rank and the number of ranks. Throws UsageError if they are not known, or
    // contradict each other.
    std::pair<int, int> place() const;

    void flags(Flags& flags);
    void check() const;  // throws UsageError
};

}  // namespace hark
