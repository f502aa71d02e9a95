#include "gpt/chat/conversation.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/files/files.h"

namespace hark::gpt {
namespace {

using nlohmann::ordered_json;

ordered_json message(const char* role, const std::string& content) {
    return {{"role", role}, {"content", content}};
}

// Nothing if there is no such file.
std::string bytes_of(const std::string& path) {
    return std::filesystem::exists(path) ? read_file(path) : "";
}

// Keeps other programs from changing the file while this lives. Makes an empty one if none is
// there.
class LockedFile {
  public:
    explicit LockedFile(const std::string& path) {
        // Another program may have put a new file in the place of the one that this waited for.
        do {
            if (fd_ >= 0) ::close(fd_);
            fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
            require(fd_ >= 0, path, ": cannot open: ", std::strerror(errno));
            int failed;
            while ((failed = ::flock(fd_, LOCK_EX)) != 0 && errno == EINTR) continue;
            const int why = errno;
            // Some file systems have no locks.
            if (failed && (why == ENOLCK || why == ENOSYS || why == EOPNOTSUPP)) failed = 0;
            if (failed) ::close(fd_);
            require(!failed, path, ": cannot lock: ", std::strerror(why));
            ::fstat(fd_, &info_);
        } while (!is_at(path));
    }
    ~LockedFile() { ::close(fd_); }
    LockedFile(const LockedFile&) = delete;

    mode_t permissions() const { return info_.st_mode & 07777; }

  private:
    bool is_at(const std::string& path) const {
        struct stat now = {};
        return ::stat(path.c_str(), &now) == 0 && now.st_dev == info_.st_dev &&
               now.st_ino == info_.st_ino;
    }

    int fd_ = -1;
    struct stat info_ = {};
};

// Throws Error, which begins with `where`, if the line is no message.
ordered_json read_message(const std::string& line, const std::string& where) {
    ordered_json read = parse_ordered_json(line, where);
    require(!read.is_discarded(), where,
            ": expected a message, an object in JSON, found text that is not JSON");
    require(read.is_object(), where, ": expected a message, an object, found ", read.type_name());
    for (const char* key : {"role", "content"})
        require(read.contains(key) && read[key].is_string(), where, ": expected a text named ",
                key);
    return read;
}

}  // namespace

Conversation::Conversation(std::string path, const std::string& system) : path_(std::move(path)) {
    if (!path_.empty()) {
        // Both throw now, not after an answer.
        std::optional<LockedFile> locked;
        if (std::filesystem::exists(path_)) locked.emplace(path_);
        read();
        const AtomicFile writable(path_);
    }
    if (system.empty()) return;
    const bool begun = !messages_.empty();
    const bool same =
        begun && messages_[0]["role"] == "system" && messages_[0]["content"] == system;
    require(!begun || same, path_,
            ": the conversation began without this --system message; leave "
            "it out");
    if (!begun) messages_.push_back(message("system", system));
}

void Conversation::read() {
    written_ = bytes_of(path_);
    size_t line = 0;
    for (size_t at = 0; at < written_.size();) {
        const size_t end = std::min(written_.find('\n', at), written_.size());
        messages_.push_back(
            read_message(written_.substr(at, end - at), concat(path_, ": line ", ++line)));
        at = end + 1;
    }
    require(messages_.empty() || messages_.back()["role"] != "user", path_, ": line ", line,
            ": the last message is the user's, and has no answer; remove this line");
    if (!written_.empty() && !written_.ends_with('\n')) written_ += '\n';
    in_file_ = messages_.size();
}

void Conversation::append(const std::string& question, const std::string& answer) {
    messages_.push_back(message("user", question));
    messages_.push_back(message("assistant", answer));
    if (path_.empty()) return;
    const LockedFile locked(path_);
    std::string now = bytes_of(path_);
    if (!now.empty() && !now.ends_with('\n')) now += '\n';
    require(now == written_, path_,
            ": another program has changed the file; this answer is not in it");
    for (; in_file_ < messages_.size(); ++in_file_)
        written_ += json_text(messages_[in_file_]) + "\n";
    AtomicFile file(path_);
    // The file stays as private as it is.
    require(::fchmod(file.fd(), locked.permissions()) == 0, path_,
            ": cannot set the permissions: ", std::strerror(errno));
    file.write(written_);
    file.commit();
}

}  // namespace hark::gpt
