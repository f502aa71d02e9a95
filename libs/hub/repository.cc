#include "hub/repository.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "core/error.h"
#include "core/json/json.h"
#include "core/models/models.h"
#include "hub/hashes.h"

namespace hark::models {
namespace {

using nlohmann::json;

constexpr size_t kMaxPart = 255, kMaxPath = 1024, kMaxRevision = 200, kMaxLicense = 64;

bool is_word(std::string_view text, const char* others) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               std::string_view(others).find(c) != std::string_view::npos;
    });
}

// OWNER or NAME.
bool is_name(std::string_view text) {
    return is_word(text, "-._") && text.front() != '.' && text.front() != '-' && text.size() <= 96;
}

bool is_revision(std::string_view text) {
    return !text.empty() && text.size() <= kMaxRevision && text != "." &&
           text.find("..") == text.npos &&
           std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

// Whether a path from outside may name a file: relative, and each part a plain name.
bool is_safe_path(std::string_view path) {
    const auto is_control = [](char c) { return (c >= 0 && c < ' ') || c == 0x7f || c == '\\'; };
    if (path.size() > kMaxPath || std::any_of(path.begin(), path.end(), is_control)) return false;
    for (;;) {
        const size_t slash = path.find('/');
        const std::string_view part = path.substr(0, slash);
        if (part.empty() || part == "." || part == ".." || part.size() > kMaxPart) return false;
        if (slash == path.npos) return true;
        path.remove_prefix(slash + 1);
    }
}

// A text under a key of an object; empty if there is none.
std::string text_at(const json& object, const char* key) {
    if (!object.is_object() || !object.contains(key) || !object[key].is_string()) return "";
    return object[key].get<std::string>();
}

// A size; nullopt for what is none.
std::optional<uint64_t> size_at(const json& object, const char* key) {
    if (!object.contains(key) || !object[key].is_number_integer()) return std::nullopt;
    if (!object[key].is_number_unsigned()) return std::nullopt;
    return object[key].get<uint64_t>();
}

// Of the model card: its identifier, the name of one without, or a list's first; else a tag.
std::string license_of(const json& root) {
    if (root.contains("cardData")) {
        const json& card = root["cardData"];
        std::string license = text_at(card, "license");
        if (card.is_object() && card.contains("license") && card["license"].is_array() &&
            !card["license"].empty() && card["license"][0].is_string())
            license = card["license"][0].get<std::string>();
        const std::string own = text_at(card, "license_name");
        if (license == "other" && !license_word(own).empty()) return license_word(own);
        if (!license_word(license).empty()) return license_word(license);
    }
    if (!root.contains("tags") || !root["tags"].is_array()) return "";
    constexpr std::string_view kTag = "license:";
    for (const json& tag : root["tags"])
        if (tag.is_string() && tag.get_ref<const std::string&>().starts_with(kTag))
            return license_word(tag.get<std::string>().substr(kTag.size()));
    return "";
}

ListedFile read_file_entry(const json& entry, const std::string& where) {
    ListedFile file = {text_at(entry, "rfilename"), {}};
    require(is_safe_path(file.name), where, ": expected a file's name, found ",
            entry.is_object() && entry.contains("rfilename")
                ? entry["rfilename"].dump(-1, ' ', true)
                : "none");
    RemoteFile& remote = file.remote;
    const bool linked = entry.contains("lfs") && entry["lfs"].is_object();
    if (linked) remote.sha256 = hash_of(text_at(entry["lfs"], "sha256"), kSha256Digits);
    if (!linked) remote.git_blob = hash_of(text_at(entry, "blobId"), kGitDigits);
    remote.version = linked ? remote.sha256 : remote.git_blob;
    const std::optional<uint64_t> bytes = size_at(linked ? entry["lfs"] : entry, "size");
    remote.bytes = bytes.value_or(0);
    remote.found = bytes.has_value() && remote.has_hash();
    return file;
}

}  // namespace

std::string license_word(const std::string& text) {
    return is_word(text, "-._+ ()/") && text.size() <= kMaxLicense ? text : "";
}

std::string RepositoryName::installed() const {
    return selection.empty() ? repository : installed_name(concat(repository, ":", selection));
}

RepositoryName parse_repository_name(const std::string& text) {
    const size_t colon = text.find(':');
    const std::string left = text.substr(0, colon);
    const size_t at = left.find('@');
    RepositoryName name;
    name.repository = left.substr(0, at);
    if (at != left.npos) name.revision = left.substr(at + 1);
    if (colon != text.npos) name.selection = text.substr(colon + 1);
    const size_t slash = name.repository.find('/');
    require_usage(slash != std::string::npos && is_name(name.repository.substr(0, slash)) &&
                      is_name(name.repository.substr(slash + 1)),
                  "'", text, "': expected OWNER/NAME[@REVISION][:FILE or TYPE] with names of ",
                  "letters, digits, -, . and _");
    require_usage(at == left.npos || is_revision(name.revision), "'", text,
                  "': expected a branch, tag or commit after @");
    require_usage(name.selection.find('@') == std::string::npos, "'", text,
                  "': expected @REVISION before :FILE or TYPE");
    const bool is_file = name.selection.ends_with(".gguf") || name.selection.ends_with(".bin");
    const bool is_type = name.selection.find('/') == std::string::npos;
    require_usage(colon == text.npos || (is_safe_path(name.selection) && (is_file || is_type)), "'",
                  text, "': expected a file's name or a type after :");
    return name;
}

const ListedFile* Repository::find(std::string_view name) const {
    const auto found = std::find_if(files.begin(), files.end(),
                                    [&](const ListedFile& file) { return file.name == name; });
    return found == files.end() ? nullptr : &*found;
}

Repository parse_repository(std::string_view text, const std::string& where) {
    const json root = parse_json(text, where);
    require(root.is_object(), where, ": expected a JSON object that describes a repository");
    Repository repository;
    repository.commit = hash_of(text_at(root, "sha"), kGitDigits);
    require(!repository.commit.empty(), where, ": expected a commit of 40 hexadecimal digits at ",
            "'sha', found none");
    require(root.contains("siblings") && root["siblings"].is_array(), where,
            ": expected a list of files at 'siblings', found none");
    repository.license = license_of(root);
    for (const json& entry : root["siblings"])
        repository.files.push_back(read_file_entry(entry, where));
    return repository;
}

}  // namespace hark::models
