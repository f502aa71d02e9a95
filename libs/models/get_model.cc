#include "models/get_model.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "models/any_model.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
// Not every repository has all of them; whether the model lacks one is seen when it is opened.
constexpr const char* kSmallFiles[] = {"generation_config.json",
                                       "preprocessor_config.json",
                                       "tokenizer.json",
                                       "tokenizer_config.json",
                                       "vocab.json",
                                       "merges.txt",
                                       "added_tokens.json",
                                       "special_tokens_map.json"};

// The directory that a model comes to before it gets its name: nobody else's while this lives.
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
                ": another hark-model fetches this model right now");
        require(locked, path.string(), ": cannot use the folder: ", std::strerror(why));
    }
    ~PartDirectory() {
        std::error_code not_empty;
        fs::remove(path_, not_empty);  // nothing has come
        ::close(fd_);
    }
    PartDirectory(const PartDirectory&) = delete;

    // Leaves nothing but `files` and gives the directory its final name.
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
                  "--from: expected http://... or https://..., found '", server, "'");
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
        require(fetch(name), base, name, ": expected the file, found HTTP status 404");
    };
    need("config.json");
    for (const char* name : kSmallFiles) fetch(name);
    if (fetch(kWeights)) return files;
    require(fetch(kIndex), base, kWeights, ": expected the weights there or in ", kIndex,
            ", found HTTP status 404 for both");
    for (const std::string& shard : safetensors_shards(directory / kIndex)) need(shard);
    return files;
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
    const AnyModel opened = open_any_model(part);
    require(std::string(opened.kind()) == model.kind, base, ": expected a model of kind ",
            model.kind, ", found ", opened.kind());
    if (opened.whisper)
        opened.whisper->tokenizer();
    else
        opened.gpt->tokenizer();
    directory.finish(files, target);
    return target;
}

}  // namespace hark::models
