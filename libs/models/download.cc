#include "models/download.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "core/files.h"
#include "core/io.h"
#include "models/digest.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kAdvance = 1 << 20;  // an attempt that brings this much was worth it

uint64_t size_or_0(const fs::path& file) {
    std::error_code failed;
    const auto bytes = fs::file_size(file, failed);
    return failed ? 0 : bytes;
}

void check_room(const fs::path& directory, uint64_t needed) {
    std::error_code failed;
    const fs::space_info space = fs::space(directory, failed);
    require(failed || space.available >= needed, directory.string(), ": ", needed,
            " bytes are to come, the disk has room for ", space.available);
}

void check_hash(const char* kind, const std::string& expected, const std::string& found,
                const std::string& url, const fs::path& file) {
    if (expected.empty() || expected == found) return;
    std::error_code ignored;
    fs::remove(file, ignored);
    fail(url, ": expected content of ", kind, " ", expected, ", found ", found,
         "; what has come is removed");
}

// Checks a whole file against what the server has promised.
void check_content(const RemoteFile& remote, const std::string& url, const fs::path& file) {
    if (!remote.sha256.empty()) check_hash("SHA-256", remote.sha256, sha256_of(file), url, file);
    if (!remote.git_blob.empty())
        check_hash("git's name", remote.git_blob, git_blob_of(file), url, file);
}

// A file that is written piece by piece and kept as it is where that ends early.
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
                ": cannot write from byte ", offset, " on");
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

fs::path version_file(const fs::path& file) { return file.string() + ".version"; }

// Calls `attempt` until it succeeds; `done` says how many bytes there are.
void Downloader::persist(const std::function<void()>& attempt,
                         const std::function<uint64_t()>& done) {
    for (int failures = 0;;) {
        const uint64_t before = done();
        try {
            attempt();
            reached_ = true;
            return;
        } catch (const TransferError& error) {
            if (!reached_) throw;
            failures = done() >= before + kAdvance ? 1 : failures + 1;
            require(failures < patience_.attempts, error.what(), "; given up after ", failures,
                    " attempts that brought nothing, the same command continues from here");
        }
        std::this_thread::sleep_for(patience_.pause * (1 << (failures - 1)));
    }
}

void Downloader::transfer(const std::string& url, const RemoteFile& remote, const fs::path& part) {
    const std::string name = part.stem().string();
    PartFile file(part);
    uint64_t at = size_or_0(part);
    // Without a hash to check the whole by, parts of two versions must not meet.
    const bool resumable = remote.has_hash() || !remote.if_range.empty();
    if (at > remote.bytes || !resumable) file.begin_at(at = 0);
    if (at == remote.bytes) return file.flush();
    check_room(part.parent_path(), remote.bytes - at);
    const auto begin = [&](uint64_t offset) { file.begin_at(at = offset); };
    const auto take = [&](std::string_view bytes) {
        require(bytes.size() <= remote.bytes - at, url, ": expected ", remote.bytes,
                " bytes, found more");
        file.write(bytes);
        report_(name, at += bytes.size(), remote.bytes);
    };
    // A hash's file may come from another address, which knows it by another tag.
    http_.get(url, at, remote.has_hash() ? "" : remote.if_range, begin, take);
    if (at < remote.bytes)
        throw TransferError(concat(url, ": expected ", remote.bytes, " bytes, found ", at));
    file.flush();
}

bool Downloader::fetch(const std::string& url, const fs::path& directory, const std::string& name) {
    RemoteFile remote;
    persist([&] { remote = http_.ask(url); }, [] { return uint64_t{0}; });
    if (!remote.found) return false;
    if (!remote.has_hash()) unchecked_.push_back(name);

    const fs::path whole = directory / name, part = whole.string() + ".part";
    const fs::path version = version_file(whole);
    std::error_code failed;
    const std::string known = fs::exists(version, failed) ? read_file(version) : "";
    const bool same = !remote.version.empty() && known == remote.version;
    if (same && size_or_0(whole) == remote.bytes) return true;
    if (!same) {
        fs::remove(part, failed);
        write_file(version, remote.version);
    }
    const auto attempt = [&] {
        try {
            transfer(url, remote, part);
        } catch (const ChangedFile&) {  // begin again
            remote = http_.ask(url);
            fs::remove(part, failed);
            write_file(version, remote.version);
            throw;
        }
    };
    persist(attempt, [&] { return size_or_0(part); });
    check_content(remote, url, part);
    fs::rename(part, whole);
    return true;
}

}  // namespace hark::models
