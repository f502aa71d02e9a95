#include "hub/get_model.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "core/error.h"
#include "core/suggest.h"
#include "hub/any_model.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
// Not every repository has all of them. Opening the model shows whether one is missing.
constexpr const char* kSmallFiles[] = {"generation_config.json",
                                       "preprocessor_config.json",
                                       "tokenizer.json",
                                       "tokenizer_config.json",
                                       "vocab.json",
                                       "merges.txt",
                                       "added_tokens.json",
                                       "special_tokens_map.json"};

// The folder in which a model's files are collected. A lock keeps other processes out.
class PartDirectory {
  public:
    explicit PartDirectory(const fs::path& path) : path_(path) {
        std::error_code failed;
        fs::create_directories(path, failed);
        require(!failed, path.string(), ": cannot make the folder: ", failed.message());
        fd_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const bool locked = fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
        const int why = errno;
        if (!locked && fd_ >= 0) ::close(fd_);
        require(locked || why != EWOULDBLOCK, path.string(),
                ": another hark-model is downloading this model");
        require(locked, path.string(), ": cannot use the folder: ", std::strerror(why));
    }
    ~PartDirectory() {
        std::error_code not_empty;
        fs::remove(path_, not_empty);
        ::close(fd_);
    }
    PartDirectory(const PartDirectory&) = delete;

    // Removes all but `files` and their version files: what another server left is not installed.
    void keep_only(const std::vector<std::string>& files) const {
        std::set<fs::path> kept;
        for (const std::string& file : files) {
            kept.insert(path_ / file);
            kept.insert(version_file(path_ / file));
        }
        std::vector<fs::path> others;
        for (const fs::directory_entry& entry : fs::directory_iterator(path_))
            if (!kept.count(entry.path())) others.push_back(entry.path());
        for (const fs::path& other : others) fs::remove_all(other);
    }
    void remove(const std::vector<std::string>& files) const {
        for (const std::string& file : files) fs::remove(path_ / file);
    }
    // Removes the version files and gives the folder its final name.
    void finish(const std::vector<std::string>& files, const fs::path& target) {
        for (const std::string& file : files) fs::remove(version_file(path_ / file));
        std::error_code failed;
        const bool flushed = ::fsync(fd_) == 0;
        require(flushed, path_.string(), ": cannot flush to the disk: ", std::strerror(errno));
        fs::rename(path_, target, failed);
        require(!failed, target.string(),
                ": cannot rename the finished folder: ", failed.message());
    }

  private:
    fs::path path_;
    int fd_ = -1;
};

std::string trimmed(std::string server) {
    while (server.ends_with('/')) server.pop_back();
    require_usage(server.starts_with("http://") || server.starts_with("https://"),
                  "--from: not a URL (got '", server, "', expected http://... or https://...)");
    return server;
}

struct ListedFile {
    std::string name;
    RemoteFile remote;
};

// Asks the server for all files of a model. The index of weights in parts is downloaded for it.
std::vector<ListedFile> list_files(const std::string& base, const fs::path& folder,
                                   Downloader& downloader) {
    std::vector<ListedFile> files;
    const auto ask = [&](const std::string& name) {
        const RemoteFile remote = downloader.ask(base + name);
        if (remote.found) files.push_back({name, remote});
        return remote.found;
    };
    const auto need = [&](const std::string& name) {
        require(ask(name), base, name, ": the server does not have this file (HTTP status 404)");
    };
    need("config.json");
    for (const char* name : kSmallFiles) ask(name);
    if (ask(kWeights)) return files;
    require(ask(kIndex), base, kWeights, ": the server has neither this file nor ", kIndex,
            " (HTTP status 404)");
    downloader.fetch(base + kIndex, files.back().remote, folder, kIndex);
    for (const std::string& shard : safetensors_shards(folder / kIndex)) need(shard);
    return files;
}

uint64_t size_or_0(const fs::path& file) {
    std::error_code failed;
    const auto bytes = fs::file_size(file, failed);
    return failed ? 0 : bytes;
}

// Says how much there is to download, and checks that the disk has room for the rest.
void check_sizes(const std::vector<ListedFile>& files, const fs::path& folder,
                 const SizeReport& report_size) {
    uint64_t bytes = 0, there = 0;
    for (const ListedFile& file : files) {
        bytes += file.remote.bytes;
        there += std::min(file.remote.bytes, size_or_0(folder / file.name) +
                                                 size_or_0(folder / (file.name + ".part")));
    }
    report_size(files.size(), bytes);
    check_room(folder, bytes - there);
}

void check_opens(const PublishedModel& model, const fs::path& folder, const std::string& base) {
    const AnyModel opened = open_any_model(folder);
    require(std::string(opened.kind()) == model.kind, base, ": wrong kind of model (got ",
            opened.kind(), ", expected ", model.kind, ")");
    if (opened.whisper)
        opened.whisper->tokenizer();
    else
        opened.gpt->tokenizer();
}

}  // namespace

const PublishedModel& published_model(const std::string& name) {
    if (const PublishedModel* const model = find_published_model(name)) return *model;
    std::vector<std::string> names;
    for (const PublishedModel& model : published_models()) names.push_back(model.name);
    throw UsageError(concat("no published model '", name, "'", did_you_mean(name, names),
                            "; hark model get --list shows all"));
}

fs::path part_folder(const fs::path& folder, const std::string& name) {
    return folder / concat(".", name, ".part");
}

fs::path get_model(const PublishedModel& model, const std::string& server, const fs::path& folder,
                   Downloader& downloader, const SizeReport& report_size) {
    const std::string base = concat(trimmed(server), "/", model.repository, "/resolve/main/");
    const std::string name = concat(model.kind, "-", model.name);
    const fs::path target = folder / name, part = part_folder(folder, name);
    std::error_code failed;
    if (fs::exists(fs::symlink_status(target, failed))) return target;
    PartDirectory directory(part);
    const std::vector<ListedFile> files = list_files(base, part, downloader);
    check_sizes(files, part, report_size);
    std::vector<std::string> names;
    for (const ListedFile& file : files) {
        downloader.fetch(base + file.name, file.remote, part, file.name);
        names.push_back(file.name);
    }
    directory.keep_only(names);
    try {
        check_opens(model, part, base);
    } catch (...) {
        directory.remove(downloader.unchecked());  // the next run downloads them again
        throw;
    }
    directory.finish(names, target);
    return target;
}

}  // namespace hark::models
