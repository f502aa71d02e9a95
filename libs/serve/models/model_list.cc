#include "serve/models/model_list.h"

#include <algorithm>

#include "core/error.h"
#include "core/models/models.h"
#include "hub/model_handle.h"
#include "serve/audio/audio_model.h"

namespace hark::serve {

namespace fs = std::filesystem;

namespace {

// The name without its kind, if that means the same model.
std::string listed_name(const InstalledModel& model, ModelKind kind) {
    const std::string prefix = concat(name_of(kind), "-");
    if (!model.name.starts_with(prefix)) return model.name;
    const std::string name = model.name.substr(prefix.size());
    try {
        const auto meant = find_listed_model(name, name_of(kind));
        return meant && meant->path == model.path ? name : model.name;
    } catch (const Error&) {  // another one of that name is broken
        return model.name;
    }
}

}  // namespace

const char* name_of(ModelKind kind) { return kind == ModelKind::text ? "gpt" : "whisper"; }

std::string model_key(const fs::path& path) {
    std::error_code failed;
    const fs::path canonical = fs::canonical(path, failed);
    return failed ? path.string() : canonical.string();
}

ModelFacts facts_of(const models::ModelHandle& model, int64_t context) {
    ModelFacts facts;
    if (model.whisper) {
        facts.kind = ModelKind::audio;
        facts.languages = languages_of(model.whisper->tokenizer());
        return facts;
    }
    const int64_t positions = model.gpt->config().n_positions;
    facts.context = context > 0 ? std::min(context, positions) : positions;
    facts.has_chats = model.gpt->chat_template().has_value();
    return facts;
}

std::optional<ModelFacts> InstalledModels::facts_of(const fs::path& path) {
    std::error_code failed;
    const fs::path config = path / "config.json";
    const auto changed = fs::last_write_time(fs::exists(config, failed) ? config : path, failed);
    const auto known = known_.find(path.string());
    if (known != known_.end() && known->second.changed == changed) return known->second.facts;
    std::optional<ModelFacts> facts;
    try {
        facts = serve::facts_of(models::open_any_model(path), context_);
    } catch (const std::exception&) {  // no model, or a broken one: it is not listed
    }
    known_[path.string()] = {changed, facts};
    return facts;
}

std::vector<ListedModel> InstalledModels::list() {
    std::vector<ListedModel> listed;
    for (const InstalledModel& installed : installed_models())
        if (std::optional<ModelFacts> facts = facts_of(installed.path)) {
            const std::string name = listed_name(installed, facts->kind);
            listed.push_back({name, {model_key(installed.path)}, {std::move(*facts)}, false});
        }
    return listed;
}

}  // namespace hark::serve
