// A server that answers as Hugging Face does, from a folder: the list of a repository's files,
// small files themselves, and for large ones a redirect to another server with a signed address.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "hub/digest.h"
#include "support/http_server.h"
#include "support/process.h"

namespace hark::test {

class FakeHub {
  public:
    inline static const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";
    inline static const std::string kSignature = "?X-Amz-Signature=5ecr37";

    FakeHub(std::string repository, std::filesystem::path folder)
        : repository_(std::move(repository)),
          folder_(std::move(folder)),
          cdn_([this](const HttpRequest& r) { return stored(r); }),
          server_([this](const HttpRequest& r) { return answer(r); }) {}

    std::string url() const { return server_.url(); }
    std::vector<HttpRequest> requests() const { return server_.requests(); }
    // Those to the server of large files.
    std::vector<HttpRequest> stored_requests() const { return cdn_.requests(); }

    // What the server says and does, before the first request.
    std::string token;  // without it files are refused; empty: they are public
    nlohmann::json card = {{"license", "apache-2.0"}};
    std::string branch = "main", commit = kCommit;
    std::vector<std::string> more_files;  // of the list, without content
    std::function<void(nlohmann::json&)> change_list;
    int busy = 0;                   // number of requests that are answered 429 first
    std::string retry_after = "0";  // in these answers
    size_t cut = SIZE_MAX;          // of the bodies of large files
    bool says_sizes = true;         // the list does

  private:
    static bool is_large(const std::string& name) {
        return name.ends_with(".safetensors") || name.ends_with(".gguf");
    }

    static HttpResponse refused(int status, const std::string& code) {
        HttpResponse response{status};
        response.body = "{\"error\": \"no\"}";
        response.headers["X-Error-Code"] = code;
        return response;
    }

    nlohmann::json entry(const std::filesystem::path& file) const {
        nlohmann::json entry = {{"rfilename", file.lexically_relative(folder_).string()}};
        if (!says_sizes) return entry;
        entry["size"] = std::filesystem::file_size(file);
        entry["blobId"] = models::git_blob_of(file);
        if (is_large(file.string()))
            entry["lfs"] = {{"sha256", models::sha256_of(file)},
                            {"size", std::filesystem::file_size(file)},
                            {"pointerSize", 134}};
        return entry;
    }

    HttpResponse list() const {
        nlohmann::json root = {{"id", repository_},
                               {"sha", commit},
                               {"gated", token.empty() ? nlohmann::json(false) : "manual"},
                               {"cardData", card},
                               {"tags", {"transformers", "license:from-tag"}}};
        root["siblings"] = nlohmann::json::array();
        for (const auto& file : std::filesystem::recursive_directory_iterator(folder_))
            if (file.is_regular_file()) root["siblings"].push_back(entry(file.path()));
        for (const std::string& name : more_files)
            root["siblings"].push_back({{"rfilename", name}, {"size", 7}});
        if (change_list) change_list(root);
        return {.body = root.dump()};
    }

    HttpResponse answer(const HttpRequest& request) {
        if (busy > 0) {
            --busy;
            HttpResponse response = refused(429, "");
            response.headers["Retry-After"] = retry_after;
            return response;
        }
        const std::string api = "/api/models/", revisions = api + repository_ + "/revision/";
        if (request.path.starts_with(revisions)) {
            const std::string revision = request.path.substr(revisions.size());
            const bool known =
                revision == branch + "?blobs=true" || revision == commit + "?blobs=true";
            return known ? list() : refused(404, "RevisionNotFound");
        }
        // As the real one does: what exists is a secret without a token.
        if (request.path.starts_with(api))
            return request.authorization.empty() ? refused(401, "RepoNotFound")
                                                 : refused(404, "RepoNotFound");
        const std::string files = "/" + repository_ + "/resolve/" + commit + "/";
        if (!request.path.starts_with(files)) return refused(404, "EntryNotFound");
        const std::string name = request.path.substr(files.size());
        const std::filesystem::path file = folder_ / name;
        if (!std::filesystem::exists(file)) return refused(404, "EntryNotFound");
        if (!token.empty() && request.authorization != "Bearer " + token)
            return request.authorization.empty() ? refused(401, "GatedRepo")
                                                 : refused(403, "GatedRepo");
        if (!is_large(name)) {
            HttpResponse response = in_parts(request, read_text(file));
            response.headers["ETag"] = "\"" + models::git_blob_of(file) + "\"";
            response.headers["X-Repo-Commit"] = commit;
            return response;
        }
        HttpResponse response{302};
        response.headers = {{"Location", cdn_.url() + "/stored/" + name + kSignature},
                            {"X-Linked-ETag", "\"" + models::sha256_of(file) + "\""},
                            {"X-Linked-Size", std::to_string(std::filesystem::file_size(file))},
                            {"X-Repo-Commit", commit}};
        return response;
    }

    // As S3 does: a signed address with a token too is refused.
    HttpResponse stored(const HttpRequest& request) {
        const std::string begin = "/stored/";
        const size_t end = request.path.find(kSignature);
        if (!request.authorization.empty() || end == std::string::npos) return {400};
        const std::string name = request.path.substr(begin.size(), end - begin.size());
        HttpResponse response = in_parts(request, read_text(folder_ / name));
        response.cut = cut;
        return response;
    }

    std::string repository_;
    std::filesystem::path folder_;
    HttpServer cdn_, server_;
};

}  // namespace hark::test
