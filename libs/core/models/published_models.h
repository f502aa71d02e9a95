// The published models that `hark model get NAME` downloads.
#pragma once

#include <span>
#include <string>

namespace hark {

struct PublishedModel {
    const char* kind;        // "whisper" or "gpt"
    const char* name;        // "tiny.en"; it is installed as whisper-tiny.en
    const char* repository;  // on Hugging Face: "openai/whisper-tiny.en"
    int megabytes;           // download size: its weights
};

std::span<const PublishedModel> published_models();
// Returns the model called "tiny.en", "whisper-tiny.en" or "openai/whisper-tiny.en"; nullptr for
// another name.
const PublishedModel* find_published_model(const std::string& name);
// "hark model get tiny.en (151 MB)"
std::string download_command(const PublishedModel& model);

}  // namespace hark
