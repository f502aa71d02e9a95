#include "kernels/comm/rendezvous/rendezvous_file.h"

#include <sys/stat.h>

#include <filesystem>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"

namespace hark {

void RendezvousFile::write(const std::string& path) const {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) {
        try {
            read(path);
        } catch (const Error& error) {
            fail(error.what(), "; --rendezvous replaces no other file");
        }
    }
    const std::string text =
        nlohmann::json{{"addresses", addresses}, {"port", port}, {"token", token}}.dump();
    AtomicFile out(path);
    require(::fchmod(out.fd(), 0600) == 0, path, ": cannot make it private");
    out.write(text + "\n");
    out.commit();
}

RendezvousFile RendezvousFile::read(const std::string& path) {
    const nlohmann::json json = parse_json(read_file(path, 1 << 20), path);
    try {
        return {json.at("addresses").get<std::vector<std::string>>(),
                json.at("port").get<std::string>(), json.at("token").get<std::string>()};
    } catch (const nlohmann::json::exception&) {
        fail(path, ": expected what rank 0 writes there");
    }
}

void RendezvousFile::remove(const std::string& path) const {
    try {
        if (read(path).token == token) std::filesystem::remove(path);
    } catch (const std::exception&) {  // it is no longer this run's
    }
}

}  // namespace hark
