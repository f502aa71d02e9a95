// The published models, and how one comes to a folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/download.h"

namespace hark::models {

inline constexpr const char* kHuggingFace = "https://huggingface.co";

struct PublishedModel {
    const char* kind;        // "whisper" or "gpt"
    const char* name;        // "tiny.en", which is installed as whisper-tiny.en
    const char* repository;  // on Hugging Face: "openai/whisper-tiny.en"
};

const std::vector<PublishedModel>& published_models();
// The one of this name, with or without its kind before it ("whisper-tiny.en"). Throws UsageError
// that lists all of them.
const PublishedModel& published_model(const std::string& name);

// Fetches a model's files from SERVER/REPOSITORY/resolve/main/ into FOLDER/KIND-NAME, which appears
// when all of them are there, whole, and open as a model. What has come of one that is broken off
// waits in FOLDER/.KIND-NAME.part. Returns where the model is, at once where it is there already.
// Throws Error as Downloader does, also where somebody else fetches the same model right now.
std::filesystem::path get_model(const PublishedModel& model, const std::string& server,
                                const std::filesystem::path& folder, Downloader& downloader);

}  // namespace hark::models
