// One file over HTTP, resumed where it was broken off and checked once it is whole.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "models/http.h"

namespace hark::models {

// When a transfer is given up.
struct Patience {
    int64_t stall_seconds = 60;             // that bring nothing
    int attempts = 6;                       // in a row that brought less than 1 MiB
    std::chrono::milliseconds pause{1000};  // after the first of them; doubled each time
};

class Downloader {
  public:
    // Told every few kilobytes.
    using Report = std::function<void(const std::string& file, uint64_t done, uint64_t bytes)>;

    Downloader(const Patience& patience, Report report)
        : patience_(patience), report_(std::move(report)), http_(patience.stall_seconds) {}

    // Fetches `url` to DIRECTORY/NAME, which appears once its size and, where the server gives one,
    // its hash are right. Until then what has come is NAME.part. NAME.version holds the server's
    // name for the file's content: as long as that is the same, what has come is kept and only the
    // rest fetched, and a whole file is not fetched again. Of a server without hashes the rest is
    // asked for by that name, and what has come is not kept where it has none. Returns false where
    // the answer is 404.
    //
    // Failures that may pass are tried again, except for the first contact: whoever has no network
    // is to know at once. Throws Error naming the URL or the file: what the server says, a full
    // disk, another size or hash than promised, which removes what has come.
    bool fetch(const std::string& url, const std::filesystem::path& directory,
               const std::string& name);
    // The names of the files that came, now or before, without a hash to check them by.
    const std::vector<std::string>& unchecked() const { return unchecked_; }

  private:
    void transfer(const std::string& url, const RemoteFile& remote,
                  const std::filesystem::path& part);
    void persist(const std::function<void()>& attempt, const std::function<uint64_t()>& done);

    Patience patience_;
    Report report_;
    HttpClient http_;
    std::vector<std::string> unchecked_;
    bool reached_ = false;  // a server has answered
};

// What fetch() keeps next to a file: "model.safetensors.version".
std::filesystem::path version_file(const std::filesystem::path& file);

}  // namespace hark::models
