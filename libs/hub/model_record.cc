#include "hub/model_record.h"

#include <algorithm>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxRecord = size_t{1} << 20, kMaxText = 300;

// A folder may come from anywhere: what is no plain text is left out.
std::string plain_text(const nlohmann::json& root, const char* key) {
    if (!root.contains(key) || !root[key].is_string()) return "";
    const std::string text = root[key].get<std::string>();
    const bool plain = text.size() <= kMaxText && std::all_of(text.begin(), text.end(), [](char c) {
                           return c >= ' ' && c < 0x7f;
                       });
    return plain ? text : "";
}

// What is no list of plain names and sizes is left out.
std::vector<RecordedFile> recorded_files(const nlohmann::json& root) {
    std::vector<RecordedFile> files;
    if (!root.contains("files") || !root["files"].is_array()) return files;
    for (const nlohmann::json& entry : root["files"]) {
        if (!entry.is_object() || !entry.contains("bytes") || !entry["bytes"].is_number_unsigned())
            continue;
        const std::string name = ListedFile{plain_text(entry, "name"), {}}.local_name();
        if (!name.empty() && name != "." && name != "..")
            files.push_back({name, entry["bytes"].get<uint64_t>()});
    }
    return files;
}

}  // namespace

void write_record(const fs::path& folder, const ModelRecord& record,
                  const std::vector<ListedFile>& files) {
    nlohmann::ordered_json root = {{"server", record.server},
                                   {"repository", record.repository},
                                   {"revision", record.revision},
                                   {"commit", record.commit},
                                   {"license", record.license}};
    root["files"] = nlohmann::ordered_json::array();
    for (const ListedFile& file : files) {
        nlohmann::ordered_json entry = {{"name", file.name}, {"bytes", file.remote.bytes}};
        if (!file.remote.sha256.empty()) entry["sha256"] = file.remote.sha256;
        if (!file.remote.git_blob.empty()) entry["git_blob"] = file.remote.git_blob;
        root["files"].push_back(entry);
    }
    write_file(folder / kRecordFile, root.dump(2) + "\n");
}

std::optional<ModelRecord> read_record(const fs::path& model) {
    std::error_code failed;
    const fs::path folder = fs::is_directory(model, failed) ? model : model.parent_path();
    const fs::path file = folder / kRecordFile;
    if (!fs::exists(file, failed)) return std::nullopt;
    try {
        const nlohmann::json root = parse_json(read_file(file, kMaxRecord), file.string());
        if (!root.is_object()) return std::nullopt;
        return ModelRecord{plain_text(root, "server"),   plain_text(root, "repository"),
                           plain_text(root, "revision"), plain_text(root, "commit"),
                           plain_text(root, "license"),  recorded_files(root)};
    } catch (const Error&) {
        return std::nullopt;
    }
}

}  // namespace hark::models
