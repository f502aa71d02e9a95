// What decides the words of a transcript: model, options and version; and which plan it is of.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/json/json.h"

namespace hark::shards {

// Returns plan_sha256 (of shards.tsv), model, model_sha256, options, options_sha256 and version.
// `model` is what --model takes; empty: the user's default. Throws Error.
nlohmann::ordered_json describe_job(const std::filesystem::path& plan, const std::string& model,
                                    const std::vector<std::string>& options);

// The SHA-256 of a model: of its file; of a folder that of the lines "HASH  PATH\n" of its files,
// sorted by path. Throws Error.
std::string model_sha256(const std::filesystem::path& model);

}  // namespace hark::shards
