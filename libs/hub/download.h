// Downloads of one file over HTTP: resumed after a failure, and checked once the file is whole.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hub/http.h"

namespace hark::models {

// When a transfer is given up.
struct RetryPolicy {
    int64_t stall_seconds = 60;             // without a byte
    int attempts = 6;                       // in a row that brought less than 1 MiB
    std::chrono::milliseconds pause{1000};  // after the first of them; doubled each time
    int64_t longest_wait = 60;              // seconds that a server may ask to wait
};

// The file's size; 0 if there is none.
uint64_t size_or_0(const std::filesystem::path& file);

class Downloader {
  public:
    // Called every few kilobytes.
    using Report = std::function<void(const std::string& file, uint64_t done, uint64_t bytes)>;

    Downloader(const RetryPolicy& policy, Report report)
        : policy_(policy), report_(std::move(report)), http_(policy.stall_seconds) {}

    // Fetches `url` to DIRECTORY/NAME, which appears once its size and its hash are right. A server
    // that states no hash leaves the content unchecked: see unchecked(). Until then the data is in
    // NAME.part, and NAME.version holds the URL (of a file with a hash the server alone) and the
    // server's tag for the content. Data of another origin or another tag is never continued. A
    // whole file is fetched again unless origin and tag are the same and its hash is right now.
    // Returns false if the answer is 404.
    //
    // A failure that may pass is tried again, after the time that the server asks to wait, except
    // before the first answer of any server: without a network the error comes at once. Throws
    // Error naming the URL or the file: what the server says, a full disk, another size or hash
    // than stated, which removes the data.
    bool fetch(const std::string& url, const std::filesystem::path& directory,
               const std::string& name);
    // The same for a file that ask() has found.
    void fetch(const std::string& url, RemoteFile remote, const std::filesystem::path& directory,
               const std::string& name);
    // HttpClient::text(), tried again as fetch() does.
    std::string text(const std::string& url, size_t limit);
    // HttpClient::authorize().
    void authorize(const std::string& server, const std::string& token) {
        http_.authorize(server, token);
    }
    // Asks what the server says of a file.
    RemoteFile ask(const std::string& url);
    // The names of the files for which the server gave no hash.
    const std::vector<std::string>& unchecked() const { return unchecked_; }

  private:
    void transfer(const std::string& url, const RemoteFile& remote,
                  const std::filesystem::path& part);
    void persist(const std::function<void()>& attempt, const std::function<uint64_t()>& done);

    RetryPolicy policy_;
    Report report_;
    HttpClient http_;
    void add_unchecked(const std::string& name, const RemoteFile& remote);

    std::vector<std::string> unchecked_;
    bool reached_ = false;  // any server has answered
};

// Throws Error if the disk of `directory` has no room for that many bytes.
void check_room(const std::filesystem::path& directory, uint64_t needed);

// The file that fetch() keeps next to one: "model.safetensors.version".
std::filesystem::path version_file(const std::filesystem::path& file);

}  // namespace hark::models
