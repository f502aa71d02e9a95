// Files and folders that get their names once they are whole.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace hark {

// A file or folder with a hidden name of its own next to the target. It is removed with everything
// in it unless commit() is called, also if SIGINT, SIGTERM, SIGHUP or another signal ends the
// process.
class TemporaryPath {
  public:
    // `create` makes the file or folder under the given name. It returns false with errno set; for
    // EEXIST another name is tried. Throws Error naming the target.
    TemporaryPath(std::filesystem::path target,
                  const std::function<bool(const std::string&)>& create);
    ~TemporaryPath();
    TemporaryPath(const TemporaryPath&) = delete;
    TemporaryPath& operator=(const TemporaryPath&) = delete;

    const std::string& name() const { return name_; }
    // Renames it to the target. Throws Error naming the target.
    void commit();

  private:
    std::string target_, name_;
};

// A new folder with the permissions that the umask leaves, which appears once it is whole.
class AtomicDirectory {
  public:
    explicit AtomicDirectory(const std::filesystem::path& target);
    std::filesystem::path path() const { return temporary_.name(); }
    // Flushes the folder to the disk and renames it. Its files are flushed by their owner.
    void commit();

  private:
    TemporaryPath temporary_;
};

}  // namespace hark
