#include "models/get_model.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "core/error.h"
#include "models/any_model.h"

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
                ": another hark-model is fetching this model");
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

// Fetches all files of a model and returns their names.
std::vector<std::string> fetch_files(const std::string& base, const fs::path& directory,
                                     Downloader& downloader) {
    std::vector<std::string> files;
    const auto fetch = [&](const std::string& name) {
        const bool found = downloader.fetch(base + name, directory, name);
        if (found) files.push_back(name);
        return found;
    };
    const auto need = [&](const std::string& name) {
        require(fetch(name), base, name, ": the server does not have this file (HTTP status 404)");
    };
    need("config.json");
    for (const char* name : kSmallFiles) fetch(name);
    if (fetch(kWeights)) return files;
    require(fetch(kIndex), base, kWeights, ": the server has neither this file nor ", kIndex,
            " (HTTP status 404)");
    for (const std::string& shard : safetensors_shards(directory / kIndex)) need(shard);
    return files;
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

const std::vector<PublishedModel>& published_models() {
    static const std::vector<PublishedModel> models = {
        {"whisper", "tiny", "openai/whisper-tiny"},
        {"whisper", "tiny.en", "openai/whisper-tiny.en"},
        {"whisper", "base", "openai/whisper-base"},
        {"whisper", "base.en", "openai/whisper-base.en"},
        {"whisper", "small", "openai/whisper-small"},
        {"whisper", "small.en", "openai/whisper-small.en"},
        {"whisper", "medium", "openai/whisper-medium"},
        {"whisper", "medium.en", "openai/whisper-medium.en"},
        {"whisper", "large-v1", "openai/whisper-large"},
        {"whisper", "large-v2", "openai/whisper-large-v2"},
        {"whisper", "large-v3", "openai/whisper-large-v3"},
        {"whisper", "turbo", "openai/whisper-large-v3-turbo"},
        {"whisper", "distil-small.en", "distil-whisper/distil-small.en"},
        {"whisper", "distil-medium.en", "distil-whisper/distil-medium.en"},
        {"whisper", "distil-large-v2", "distil-whisper/distil-large-v2"},
        {"whisper", "distil-large-v3", "distil-whisper/distil-large-v3"},
        {"gpt", "gpt2", "openai-community/gpt2"},
        {"gpt", "gpt2-medium", "openai-community/gpt2-medium"},
        {"gpt", "gpt2-large", "openai-community/gpt2-large"},
        {"gpt", "gpt2-xl", "openai-community/gpt2-xl"}};
    return models;
}

const PublishedModel& published_model(const std::string& name) {
    std::string names;
    for (const PublishedModel& model : published_models()) {
        if (name == model.name || name == concat(model.kind, "-", model.name)) return model;
        names += concat(names.empty() ? "" : ", ", model.name);
    }
    throw UsageError(concat("no published model '", name, "': expected one of ", names));
}

fs::path get_model(const PublishedModel& model, const std::string& server, const fs::path& folder,
                   Downloader& downloader) {
    const std::string base = concat(trimmed(server), "/", model.repository, "/resolve/main/");
    const std::string name = concat(model.kind, "-", model.name);
    const fs::path target = folder / name, part = folder / concat(".", name, ".part");
    std::error_code failed;
    if (fs::exists(fs::symlink_status(target, failed))) return target;
    PartDirectory directory(part);
    const std::vector<std::string> files = fetch_files(base, part, downloader);
    directory.keep_only(files);
    try {
        check_opens(model, part, base);
    } catch (...) {
        directory.remove(downloader.unchecked());  // the next run fetches them again
        throw;
    }
    directory.finish(files, target);
    return target;
}

}  // namespace hark::models
