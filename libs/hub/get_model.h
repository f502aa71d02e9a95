// Downloads of published models (core/published_models.h).
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "core/published_models.h"
#include "hub/download.h"

namespace hark::models {

inline constexpr const char* kHuggingFace = "https://huggingface.co";

// find_published_model(). Throws UsageError with the nearest name if there is none.
const PublishedModel& published_model(const std::string& name);

// Called before the first byte is downloaded.
using SizeReport = std::function<void(size_t files, uint64_t bytes)>;

// Downloads a model's files from SERVER/REPOSITORY/resolve/main/ to FOLDER/KIND-NAME, which appears
// once all are there, whole, and open as a model. An incomplete download is in part_folder(). An
// installed model is returned at once. Throws Error as Downloader does, and if the disk is too
// small or another process is downloading the same model.
std::filesystem::path get_model(const PublishedModel& model, const std::string& server,
                                const std::filesystem::path& folder, Downloader& downloader,
                                const SizeReport& report_size);

// FOLDER/.NAME.part
std::filesystem::path part_folder(const std::filesystem::path& folder, const std::string& name);

}  // namespace hark::models
