// The folder in which a model's files are collected until it is whole.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hark::models {

// FOLDER/.NAME.part; of OWNER/NAME it is FOLDER/OWNER/.NAME.part
std::filesystem::path part_folder(const std::filesystem::path& folder, const std::string& name);

// part_folder(), and a lock that keeps other processes out. An empty one is removed at the end.
class PartDirectory {
  public:
    // Throws Error if it cannot be made, or if another process has it.
    PartDirectory(const std::filesystem::path& folder, const std::string& name);
    ~PartDirectory();
    PartDirectory(const PartDirectory&) = delete;

    const std::filesystem::path& path() const { return path_; }
    // Removes all but `files` and their version files: what another server left is not installed.
    void keep_only(const std::vector<std::string>& files) const;
    void remove(const std::vector<std::string>& files) const;
    // Removes the version files and gives the folder its final name.
    void finish(const std::vector<std::string>& files, const std::filesystem::path& target);

  private:
    std::filesystem::path path_;
    std::filesystem::path owner_;  // OWNER/, which goes if it is empty; else an empty path
    int fd_ = -1;
};

}  // namespace hark::models
