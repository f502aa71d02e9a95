#include "hub/download.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "core/files/files.h"
#include "core/files/io.h"
#include "hub/digest.h"
#include "hub/http_address.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kAdvance = 1 << 20;  // an attempt that brings this much counts as no failure

// Returns how a whole file differs from what the server promised; empty if it does not.
std::string difference_from(const RemoteFile& remote, const fs::path& file) {
    const auto compare = [](const char* kind, const std::string& expected,
                            const std::string& got) -> std::string {
        return expected == got
                   ? ""
                   : concat("wrong ", kind, " (got ", got, ", expected ", expected, ")");
    };
    if (!remote.sha256.empty()) return compare("SHA-256", remote.sha256, sha256_of(file));
    if (!remote.git_blob.empty())
        return compare("git object name", remote.git_blob, git_blob_of(file));
    return "";
}

// The version file's text: a part belongs to one URL and one version of the file there. A hash is
// of the content: with one it belongs to the server, whose next commit may have the same file.
std::string origin_of(const std::string& url, const RemoteFile& remote) {
    const std::optional<Address> server = address_of(url);
    const std::string place = remote.has_hash() && server
                                  ? concat(server->scheme, "://", server->host, ":", server->port)
                                  : url;
    return concat(place, "\n", remote.version, "\n");
}

constexpr size_t kMaxOrigin = size_t{1} << 16;

// A file that is written piece by piece. What was written stays if the transfer ends early.
class PartFile {
  public:
    explicit PartFile(const fs::path& path)
        : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)),
          name_(path.string()),
          writer_(fd_, name_) {
        require(fd_ >= 0, name_, ": cannot write: ", std::strerror(errno));
    }
    ~PartFile() { ::close(fd_); }
    PartFile(const PartFile&) = delete;

    void begin_at(uint64_t offset) {
        const auto at = static_cast<off_t>(offset);
        require(::ftruncate(fd_, at) == 0 && ::lseek(fd_, at, SEEK_SET) == at, name_,
                ": cannot write at byte ", offset);
    }
    void write(std::string_view bytes) {
        writer_.write(bytes);
        writer_.flush();
    }
    void flush() {
        const bool flushed = ::fsync(fd_) == 0;
        require(flushed, name_, ": cannot flush to the disk: ", std::strerror(errno));
    }

  private:
    int fd_;
    std::string name_;
    ByteWriter writer_;
};

}  // namespace

uint64_t size_or_0(const fs::path& file) {
    std::error_code failed;
    const auto bytes = fs::file_size(file, failed);
    return failed ? 0 : bytes;
}

void check_room(const fs::path& directory, uint64_t needed) {
    std::error_code failed;
    const fs::space_info space = fs::space(directory, failed);
    require(failed || space.available >= needed, directory.string(), ": ", needed,
            " bytes are needed, the disk has room for ", space.available);
}

fs::path version_file(const fs::path& file) { return file.string() + ".version"; }

// Calls `attempt` until it succeeds. `done` returns how many bytes there are.
void Downloader::persist(const std::function<void()>& attempt,
                         const std::function<uint64_t()>& done) {
    for (int failures = 0;;) {
        const uint64_t before = done();
        std::chrono::milliseconds pause{};
        try {
            attempt();
            reached_ = true;
            return;
        } catch (const TransferError& error) {
            const auto* const busy = dynamic_cast<const BusyServer*>(&error);
            if (!reached_ && !busy) throw;
            reached_ = true;
            require(!busy || busy->seconds <= policy_.longest_wait, error.what(),
                    "; it asks to wait ", busy ? busy->seconds : 0, " seconds");
            failures = done() >= before + kAdvance ? 1 : failures + 1;
            require(failures < policy_.attempts, error.what(), "; gave up after ", failures,
                    failures == 1 ? " attempt" : " attempts",
                    " that brought nothing. Run the same command again to continue");
            pause =
                busy ? std::chrono::seconds(busy->seconds) : policy_.pause * (1 << (failures - 1));
        }
        std::this_thread::sleep_for(pause);
    }
}

void Downloader::transfer(const std::string& url, const RemoteFile& remote, const fs::path& part) {
    const std::string name = part.stem().string();
    PartFile file(part);
    uint64_t at = size_or_0(part);
    // Without a hash for the whole file, parts of two versions must not be joined.
    const bool resumable = remote.has_hash() || !remote.if_range.empty();
    if (at > remote.bytes || !resumable) file.begin_at(at = 0);
    if (at == remote.bytes) return file.flush();
    check_room(part.parent_path(), remote.bytes - at);
    const auto begin = [&](uint64_t offset) { file.begin_at(at = offset); };
    const auto take = [&](std::string_view bytes) {
        require(bytes.size() <= remote.bytes - at, url,
                ": the server sent too much (got more than the ", remote.bytes,
                " bytes that it stated)");
        file.write(bytes);
        report_(name, at += bytes.size(), remote.bytes);
    };
    // A file with a hash may come from another address, which has another tag for it.
    http_.get(url, at, remote.has_hash() ? "" : remote.if_range, begin, take);
    if (at < remote.bytes)
        throw TransferError(concat(url, ": the file ended early (got ", at, " bytes, expected ",
                                   remote.bytes, ")"));
    file.flush();
}

std::string Downloader::text(const std::string& url, size_t limit) {
    std::string text;
    persist([&] { text = http_.text(url, limit); }, [] { return uint64_t{0}; });
    return text;
}

RemoteFile Downloader::ask(const std::string& url) {
    RemoteFile remote;
    persist([&] { remote = http_.ask(url); }, [] { return uint64_t{0}; });
    return remote;
}

void Downloader::add_unchecked(const std::string& name, const RemoteFile& remote) {
    if (!remote.has_hash() && std::count(unchecked_.begin(), unchecked_.end(), name) == 0)
        unchecked_.push_back(name);
}

bool Downloader::fetch(const std::string& url, const fs::path& directory, const std::string& name) {
    const RemoteFile remote = ask(url);
    if (remote.found) fetch(url, remote, directory, name);
    return remote.found;
}

void Downloader::fetch(const std::string& url, RemoteFile remote, const fs::path& directory,
                       const std::string& name) {
    const fs::path whole = directory / name, part = whole.string() + ".part";
    const fs::path version = version_file(whole);
    std::error_code failed;
    const bool known = fs::is_regular_file(fs::symlink_status(version, failed)) &&
                       fs::file_size(version, failed) <= kMaxOrigin;
    const bool same =
        known && !remote.version.empty() && read_file(version) == origin_of(url, remote);
    const bool there = same && size_or_0(whole) == remote.bytes;
    if (there && difference_from(remote, whole).empty()) return add_unchecked(name, remote);
    const auto begin_anew = [&] {
        fs::remove(part, failed);
        write_file(version, origin_of(url, remote));
    };
    fs::remove(whole, failed);
    if (!same) begin_anew();
    const auto attempt = [&] {
        try {
            transfer(url, remote, part);
        } catch (const ChangedFile&) {
            remote = http_.ask(url);
            begin_anew();
            throw;
        }
    };
    persist(attempt, [&] { return size_or_0(part); });
    const std::string difference = difference_from(remote, part);
    if (!difference.empty()) {
        fs::remove(part, failed);
        fs::remove(version, failed);
        fail(url, ": ", difference, "; the file is removed");
    }
    add_unchecked(name, remote);
    fs::rename(part, whole);
}

}  // namespace hark::models
