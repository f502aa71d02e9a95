// Downloads of models: published ones (core/models/published_models.h) and any repository's.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "core/models/published_models.h"
#include "hub/download.h"
#include "hub/part_directory.h"
#include "hub/repository.h"
#include "hub/server.h"

namespace hark::models {

// A model to download.
struct WantedModel {
    std::string installed;  // its folder's name: "whisper-tiny", "OWNER/NAME:Q4_K_M"
    RepositoryName from;
    // Of a published model. Its server may be a mirror that has files alone, and no list of them.
    const PublishedModel* published = nullptr;
};

// A name of find_published_model(), or OWNER/NAME[@REVISION][:FILE or TYPE]. Throws UsageError with
// the nearest published name for another.
WantedModel wanted_model(const std::string& name);

// What will be downloaded. `license` and `commit` are empty if the server does not say them.
struct DownloadSize {
    size_t files = 0;
    uint64_t bytes = 0;
    std::string license, commit;
};
// Called before the first large file is downloaded.
using SizeReport = std::function<void(const DownloadSize&)>;

// Downloads a model's files to FOLDER/INSTALLED, which appears once all are there, whole, and open
// as a model; next to them is the record (model_record.h) if the server has a list of files. An
// incomplete download is in part_folder(). Returns the path of the model: the folder, or the GGUF
// file in it. An installed model is returned at once. Throws Error as Downloader does, and if the
// disk is too small, another process is downloading the same model, the server refuses access (with
// the page on which a licence is accepted), or another revision is installed.
std::filesystem::path get_model(const WantedModel& model, const Server& server,
                                const std::filesystem::path& folder, Downloader& downloader,
                                const SizeReport& report_size);

}  // namespace hark::models
