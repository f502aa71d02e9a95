// The file of --rendezvous FILE.
#pragma once

#include <string>
#include <vector>

namespace hark {

// Rank 0's addresses and port, and the run's token.
struct RendezvousFile {
    std::vector<std::string> addresses;
    std::string port, token;

    // Writes it with mode 0600. Throws Error if the path is there and is no rendezvous file.
    void write(const std::string& path) const;
    static RendezvousFile read(const std::string& path);  // throws Error
    // Removes the file, unless another run has written it since.
    void remove(const std::string& path) const;
};

}  // namespace hark
