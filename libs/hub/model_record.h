// Where an installed model is from: the file hark-model.json in its folder (docs/formats.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hub/repository.h"

namespace hark::models {

inline constexpr const char* kRecordFile = "hark-model.json";

// A file in the model's folder, with the size that the server gave.
struct RecordedFile {
    std::string name;
    uint64_t bytes = 0;
};

// Texts of visible ASCII characters and spaces; empty if they are not known.
struct ModelRecord {
    std::string server, repository, revision, commit, license;
    std::vector<RecordedFile> files = {};  // read_record() fills it
};

void write_record(const std::filesystem::path& folder, const ModelRecord& record,
                  const std::vector<ListedFile>& files);

// Returns the record next to a model: in its folder, or in that of its file. nullopt if there is
// none or it cannot be read.
std::optional<ModelRecord> read_record(const std::filesystem::path& model);

}  // namespace hark::models
