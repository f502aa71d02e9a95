#include "core/models/published_models.h"

#include "core/error.h"

namespace hark {
namespace {

// Sizes of model.safetensors, or of its parts, in units of 10^6 bytes.
constexpr PublishedModel kModels[] = {
    {"whisper", "tiny", "openai/whisper-tiny", 151},
    {"whisper", "tiny.en", "openai/whisper-tiny.en", 151},
    {"whisper", "base", "openai/whisper-base", 290},
    {"whisper", "base.en", "openai/whisper-base.en", 290},
    {"whisper", "small", "openai/whisper-small", 967},
    {"whisper", "small.en", "openai/whisper-small.en", 967},
    {"whisper", "medium", "openai/whisper-medium", 3056},
    {"whisper", "medium.en", "openai/whisper-medium.en", 3056},
    {"whisper", "large-v1", "openai/whisper-large", 6173},
    {"whisper", "large-v2", "openai/whisper-large-v2", 6173},
    {"whisper", "large-v3", "openai/whisper-large-v3", 3087},
    {"whisper", "turbo", "openai/whisper-large-v3-turbo", 1618},
    {"whisper", "distil-small.en", "distil-whisper/distil-small.en", 332},
    {"whisper", "distil-medium.en", "distil-whisper/distil-medium.en", 789},
    {"whisper", "distil-large-v2", "distil-whisper/distil-large-v2", 1513},
    {"whisper", "distil-large-v3", "distil-whisper/distil-large-v3", 1513},
    {"gpt", "gpt2", "openai-community/gpt2", 548},
    {"gpt", "gpt2-medium", "openai-community/gpt2-medium", 1520},
    {"gpt", "gpt2-large", "openai-community/gpt2-large", 3247},
    {"gpt", "gpt2-xl", "openai-community/gpt2-xl", 6432}};

}  // namespace

std::span<const PublishedModel> published_models() { return kModels; }

const PublishedModel* find_published_model(const std::string& name) {
    for (const PublishedModel& model : kModels)
        if (name == model.name || name == model.repository ||
            name == concat(model.kind, "-", model.name))
            return &model;
    return nullptr;
}

std::string download_command(const PublishedModel& model) {
    return concat("hark model get ", model.name, " (", model.megabytes, " MB)");
}

}  // namespace hark
