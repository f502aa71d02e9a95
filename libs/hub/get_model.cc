#include "hub/get_model.h"

#include <algorithm>
#include <optional>

#include "core/cli/suggest.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "core/models/models.h"
#include "formats/tensor_source.h"
#include "gpt/families/config.h"
#include "hub/http_address.h"
#include "hub/model_handle.h"
#include "hub/model_record.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxList = size_t{32} << 20;  // bytes of a server's list of files
constexpr const char* kMain = "main";
// What a mirror that has no list of files is asked for: the files of the published models.
constexpr const char* kMirrored[] = {
    "config.json",      "generation_config.json", "preprocessor_config.json",
    "tokenizer.json",   "tokenizer_config.json",  "vocab.json",
    "merges.txt",       "added_tokens.json",      "special_tokens_map.json",
    "model.safetensors"};

// One download, step by step.
class Download {
  public:
    Download(const WantedModel& model, const Server& server, Downloader& downloader,
             const fs::path& part)
        : model_(model), server_(server), downloader_(downloader), part_(part) {}

    // Finds out what the model's files are. An index of weights in parts is downloaded for it.
    void list() {
        const std::optional<Repository> repository = ask_for_list();
        if (repository) {
            record_ = {server_.url, model_.from.repository, revision(), repository->commit,
                       repository->license};
            const bool whole = model_.from.selection.empty();
            files_ = whole ? folder_files(*repository, model_.from.repository)
                           : selected_files(*repository, model_.from);
        } else {
            for (const char* name : kMirrored) add_if_there(name);
            if (files_.empty() || files_.back().name != kMirrored[std::size(kMirrored) - 1])
                add_if_there(kSafetensorsIndex);
            require_file("config.json");
            require(files_.back().name.starts_with("model.safetensors"), base(),
                    "model.safetensors: the server has neither this file nor ", kSafetensorsIndex,
                    " (HTTP status 404)");
        }
        for (ListedFile& file : files_) complete(file);
        if (files_.back().name == kSafetensorsIndex) add_shards(repository);
    }

    // Says how much there is to download, and checks that the disk has room for the rest.
    void check_sizes(const SizeReport& report_size) const {
        uint64_t bytes = 0, there = 0;
        for (const ListedFile& file : files_) {
            const std::string name = file.local_name();
            require(file.remote.bytes <= UINT64_MAX - bytes, base(), file.name,
                    ": expected a possible size, found ", file.remote.bytes);
            bytes += file.remote.bytes;
            there += std::min(file.remote.bytes,
                              size_or_0(part_ / name) + size_or_0(part_ / (name + ".part")));
        }
        report_size({files_.size(), bytes, record_ ? record_->license : "",
                     record_ ? record_->commit : ""});
        check_room(part_, bytes - there);
    }

    // Downloads them: the configuration is checked before the weights.
    void fetch() {
        bool is_known = !model_.from.selection.empty();
        for (const ListedFile& file : files_) {
            const bool weights = file.name.ends_with(".safetensors") || file.name.ends_with(".bin");
            if (weights && !is_known) check_config();
            is_known = is_known || weights;
            const std::string name = file.local_name();
            fs::create_directories((part_ / name).parent_path());
            downloader_.fetch(url_of(file), file.remote, part_, name);
        }
    }

    void check_opens() const {
        const ModelHandle opened = open_any_model(model_in(part_));
        require(!model_.published || std::string(opened.kind()) == model_.published->kind, base(),
                ": wrong kind of model (got ", opened.kind(), ", expected ",
                model_.published ? model_.published->kind : "", ")");
        check_tokenizer(opened);
    }

    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const ListedFile& file : files_) names.push_back(file.local_name());
        return names;
    }
    void record() const {
        if (record_) write_record(part_, *record_, files_);
    }

  private:
    std::string revision() const {
        return model_.from.revision.empty() ? kMain : model_.from.revision;
    }
    // The address of the files; of a list's commit, so that all are of one version.
    std::string base() const {
        const std::string at = record_ ? record_->commit : percent_encoded(revision(), false);
        return server_.at(concat("/", model_.from.repository, "/resolve/", at, "/"));
    }
    std::string url_of(const ListedFile& file) const {
        return base() + percent_encoded(file.name, true);
    }

    // nullopt: the server has none of this published model.
    std::optional<Repository> ask_for_list() {
        const std::string url =
            server_.at(concat("/api/models/", model_.from.repository, "/revision/",
                              percent_encoded(revision(), false), "?blobs=true"));
        try {
            return parse_repository(downloader_.text(url, kMaxList), url);
        } catch (const Refusal& refusal) {
            if (refusal.status != 404) throw;
            if (model_.published) return std::nullopt;
            require(refusal.code == "RepoNotFound", model_.from.repository,
                    ": the server has no revision '", revision(),
                    "' of this repository, or no such repository (HTTP status 404 of ", url, ")");
            fail(model_.from.repository, ": the server has no such repository (HTTP status 404 of ",
                 url, ")");
        }
    }
    void add_if_there(const char* name) {
        const RemoteFile remote = downloader_.ask(base() + name);
        if (remote.found) files_.push_back({name, remote});
    }
    void require_file(const std::string& name) const {
        const bool found = std::any_of(files_.begin(), files_.end(),
                                       [&](const ListedFile& file) { return file.name == name; });
        require(found, base(), name, ": the server does not have this file (HTTP status 404)");
    }
    // Asks for the size and hash of a file of which the list does not say them.
    void complete(ListedFile& file) {
        if (!file.remote.found) file.remote = downloader_.ask(url_of(file));
        require(file.remote.found, url_of(file),
                ": the server does not have this file (HTTP status 404)");
    }
    void add_shards(const std::optional<Repository>& repository) {
        downloader_.fetch(url_of(files_.back()), files_.back().remote, part_, kSafetensorsIndex);
        for (const std::string& shard : safetensors_shards(part_ / kSafetensorsIndex)) {
            const ListedFile* const listed = repository ? repository->find(shard) : nullptr;
            require(!repository || listed, base(), kSafetensorsIndex, ": names '", shard,
                    "', which the repository does not have");
            ListedFile file = listed ? *listed : ListedFile{shard, {}};
            complete(file);
            files_.push_back(file);
        }
    }
    // A model of a family that hark does not read is known before its weights come. Nothing of it
    // is kept.
    void check_config() const {
        const fs::path file = part_ / "config.json";
        try {
            const auto root = parse_json(read_file(file, size_t{1} << 20), file.string());
            if (!root.is_object() || !root.contains("model_type")) return;
            if (root["model_type"] != "whisper") gpt::load_config(part_);
        } catch (const Error&) {
            for (const std::string& name : names())
                for (const fs::path& path : {part_ / name, version_file(part_ / name)}) {
                    fs::remove(path);
                    std::error_code not_empty;
                    if (path.parent_path() != part_) fs::remove(path.parent_path(), not_empty);
                }
            throw;
        }
    }

    const WantedModel& model_;
    const Server& server_;
    Downloader& downloader_;
    const fs::path part_;
    std::optional<ModelRecord> record_;  // none of a mirror without a list
    std::vector<ListedFile> files_;
};

// What to do where the server refuses access. A licence is accepted on Hugging Face's page.
[[noreturn]] void explain(const Refusal& refusal, const WantedModel& model, const Server& server) {
    const std::string page = concat(kHuggingFace, "/", model.from.repository);
    const std::string status = concat(" (HTTP status ", refusal.status, ")");
    const bool gated = refusal.code == "GatedRepo";
    const std::string what = concat(
        model.from.repository, ": ",
        gated ? "this repository is gated" : "this repository is gated, private or not there",
        status);
    require(server.takes_token, what, "; no token is sent to --from ", server.url,
            ": set HF_ENDPOINT to this address for that");
    require(!server.token.empty(), what, "; accept its licence at ", page,
            " and set HF_TOKEN to a token of your account");
    fail(what, "; your token gives no access: accept its licence at ", page,
         " with the token's account, or set HF_TOKEN to another token");
}

// Whether the installed model is of the wanted revision.
void check_revision(const WantedModel& model, const fs::path& target) {
    const std::string& wanted = model.from.revision;
    if (wanted.empty()) return;
    const ModelRecord there = read_record(target).value_or(ModelRecord{});
    const bool same =
        there.revision == wanted || (wanted.size() >= 7 && there.commit.starts_with(wanted));
    require(same, target.string(), ": is revision '", there.revision, "' (commit ", there.commit,
            "), not '", wanted, "'; to replace it, first run: hark model rm ", model.installed);
}

}  // namespace

WantedModel wanted_model(const std::string& name) {
    if (const PublishedModel* const model = find_published_model(name))
        return {concat(model->kind, "-", model->name), {model->repository, "", ""}, model};
    if (name.find('/') != name.npos || name.find('@') != name.npos || name.find(':') != name.npos) {
        const RepositoryName from = parse_repository_name(name);
        return {from.installed(), from, nullptr};
    }
    std::vector<std::string> names;
    for (const PublishedModel& model : published_models()) names.push_back(model.name);
    throw UsageError(concat("no published model '", name, "'", did_you_mean(name, names),
                            "; hark model get --list shows all"));
}

fs::path get_model(const WantedModel& model, const Server& server, const fs::path& folder,
                   Downloader& downloader, const SizeReport& report_size) {
    const fs::path target = folder / model.installed;
    std::error_code failed;
    if (fs::exists(fs::symlink_status(target, failed))) {
        check_revision(model, target);
        return model_in(target);
    }
    server.authorize(downloader);
    PartDirectory directory(folder, model.installed);
    Download download(model, server, downloader, directory.path());
    try {
        download.list();
        download.check_sizes(report_size);
        download.fetch();
    } catch (const Refusal& refusal) {
        if (refusal.status != 401 && refusal.status != 403) throw;
        explain(refusal, model, server);
    }
    directory.keep_only(download.names());
    try {
        download.check_opens();
    } catch (...) {
        directory.remove(downloader.unchecked());  // the next run downloads them again
        throw;
    }
    download.record();
    directory.finish(download.names(), target);
    return model_in(target);
}

}  // namespace hark::models
