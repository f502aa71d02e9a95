// What /v1/models tells: which models there are, and what each answers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "serve/models/served_model.h"

namespace hark::models {
struct ModelHandle;
}

namespace hark::serve {

// The kind in names of models.
const char* name_of(ModelKind kind);

struct ListedModel {
    std::string name;
    std::vector<std::string> paths;  // of one name there may be a model of each kind
    std::vector<ModelFacts> facts;   // of each path
    bool is_loaded = false;
};

// The installed models, in the order of hark-model list. For one thread.
class InstalledModels {
  public:
    // `context`: as that of facts_of().
    explicit InstalledModels(int64_t context) : context_(context) {}

    // Those that open, each as an entry of its own: gpt-NAME and whisper-NAME as NAME, if that
    // means them. Models that have not changed since the last call are not opened again.
    std::vector<ListedModel> list();

  private:
    struct Known {
        std::filesystem::file_time_type changed;
        std::optional<ModelFacts> facts;  // nothing: it does not open
    };
    std::optional<ModelFacts> facts_of(const std::filesystem::path& path);

    int64_t context_;
    std::map<std::string, Known> known_;  // by path
};

// What is known of an open model. `context`: tokens of prompt and answer, at most; 0: as many as
// the model has.
ModelFacts facts_of(const models::ModelHandle& model, int64_t context);

// The same text for each path to the model.
std::string model_key(const std::filesystem::path& path);

}  // namespace hark::serve
