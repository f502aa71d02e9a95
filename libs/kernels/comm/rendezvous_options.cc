#include "kernels/comm/rendezvous_options.h"

#include "core/error.h"
#include "kernels/comm/transport.h"

namespace hark {

std::optional<std::pair<std::string, std::string>> RendezvousOptions::address() const {
    constexpr std::string_view kScheme = "tcp://";
    if (where.find("://") == std::string::npos) {
        const size_t colon = where.rfind(':');
        require_usage(colon == std::string::npos || colon == 0 || colon + 1 == where.size() ||
                          where.find('/') != std::string::npos ||
                          where.find_first_not_of("0123456789", colon + 1) != std::string::npos,
                      "--rendezvous: '", where, "' is no file name; write tcp://", where);
        return std::nullopt;
    }
    const std::string rest = where.starts_with(kScheme) ? where.substr(kScheme.size()) : "";
    const size_t colon = rest.rfind(':');
    require_usage(colon != std::string::npos && colon > 0 && colon + 1 < rest.size() &&
                      rest.find('/') == std::string::npos,
                  "--rendezvous: expected tcp://HOST:PORT or a file, got '", where, "'");
    const std::string port = rest.substr(colon + 1);
    require_usage(port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos &&
                      std::stoi(port) >= 1 && std::stoi(port) <= 65535,
                  "--rendezvous: expected a port from 1 to 65535, got '", where, "'");
    std::string host = rest.substr(0, colon);
    if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    require_usage(!host.empty(), "--rendezvous: expected a host, got '", where, "'");
    return std::pair(host, port);
}

std::pair<int, int> RendezvousOptions::place() const {
    const std::optional<Launched> launched = launched_place();
    require_usage((rank && ranks) || launched,
                  "--rendezvous needs --rank and --ranks, unless mpirun or srun gives them");
    const int64_t size = ranks ? *ranks : launched->size, own = rank ? *rank : launched->rank;
    require_usage(own < size, "--rank: expected 0 to ", size - 1, " of ", size, " ranks, got ",
                  own);
    return {static_cast<int>(own), static_cast<int>(size)};
}

void RendezvousOptions::flags(Flags& flags) {
    flags.add_name("rendezvous", where, "WHERE tcp://HOST:PORT, or a file that all processes see")
        .completes(Completes::file)
        .details(
            "Processes on several machines without MPI: all are started with the same WHERE. "
            "Rank 0 listens on HOST:PORT, or writes FILE, with mode 0600; the others connect "
            "to it and to one another. What they send is not encrypted.");
    flags.add("rank", rank, "N number of this process, from 0", 0, 1 << 16)
        .details("For --rendezvous; without it the one that mpirun or srun gives.");
    flags.add("ranks", ranks, "N processes of the run", 1, 1 << 16)
        .details("For --rendezvous; without it those that mpirun or srun has started.");
    flags.add_name("token-file", token_file, "FILE secret of the run, for tcp://")
        .completes(Completes::file)
        .details(
            "16 characters or more, the same for all processes, else the value of "
            "HARK_RENDEZVOUS_TOKEN. It is not sent.");
    flags.add("rendezvous-timeout", timeout, "S seconds to wait for all processes", 1, 1 << 20);
}

void RendezvousOptions::check() const {
    if (!given()) {
        require_usage(!rank && !ranks && token_file.empty(),
                      "--rank, --ranks and --token-file need --rendezvous");
        return;
    }
    require_usage(address() || token_file.empty(),
                  "--token-file goes with --rendezvous tcp://HOST:PORT: a file has its own token");
    place();
}

}  // namespace hark
