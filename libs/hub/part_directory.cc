#include "hub/part_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "core/error.h"
#include "hub/download.h"

namespace hark::models {

namespace fs = std::filesystem;

fs::path part_folder(const fs::path& folder, const std::string& name) {
    const fs::path whole = folder / name;
    return whole.parent_path() / concat(".", whole.filename().string(), ".part");
}

PartDirectory::PartDirectory(const fs::path& folder, const std::string& name)
    : path_(part_folder(folder, name)) {
    if (path_.parent_path() != folder) owner_ = path_.parent_path();
    std::error_code failed;
    fs::create_directories(path_, failed);
    require(!failed, path_.string(), ": cannot make the folder: ", failed.message());
    fd_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool locked = fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
    const int why = errno;
    if (!locked && fd_ >= 0) ::close(fd_);
    require(locked || why != EWOULDBLOCK, path_.string(),
            ": another hark-model is downloading this model");
    require(locked, path_.string(), ": cannot use the folder: ", std::strerror(why));
}

PartDirectory::~PartDirectory() {
    std::error_code not_empty;
    fs::remove(path_, not_empty);
    if (!owner_.empty()) fs::remove(owner_, not_empty);
    ::close(fd_);
}

void PartDirectory::keep_only(const std::vector<std::string>& files) const {
    std::set<fs::path> kept;
    for (const std::string& file : files) {
        kept.insert(path_ / file);
        kept.insert(version_file(path_ / file));
        kept.insert((path_ / file).parent_path());
    }
    std::vector<fs::path> others;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path_))
        if (!kept.count(entry.path())) others.push_back(entry.path());
    for (const fs::path& other : others) fs::remove_all(other);
}

void PartDirectory::remove(const std::vector<std::string>& files) const {
    for (const std::string& file : files) fs::remove(path_ / file);
}

void PartDirectory::finish(const std::vector<std::string>& files, const fs::path& target) {
    for (const std::string& file : files) fs::remove(version_file(path_ / file));
    std::error_code failed;
    const bool flushed = ::fsync(fd_) == 0;
    require(flushed, path_.string(), ": cannot flush to the disk: ", std::strerror(errno));
    fs::rename(path_, target, failed);
    require(!failed, target.string(), ": cannot rename the finished folder: ", failed.message());
}

}  // namespace hark::models
