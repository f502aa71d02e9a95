#include "serve/served_models.h"

#include <algorithm>
#include <utility>

#include "core/models.h"
#include "hub/any_model.h"

namespace hark::serve {
namespace {

// What requests call the model: the name as it is given, or a path's last part.
std::string served_name(const std::string& given) {
    std::string path = given;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return is_model_path(given) ? path.substr(path.rfind('/') + 1) : path;
}

template <class Served>
bool has_name(const std::vector<Served>& served, const std::string& name) {
    return std::any_of(served.begin(), served.end(),
                       [&](const Served& one) { return one.name == name; });
}

}  // namespace

ServedModels::ServedModels(const ServeOptions& options, Console& console) {
    for (const std::string& given : options.models) read(given, options, console);
}

void ServedModels::read(const std::string& given, const ServeOptions& options, Console& console) {
    const std::string name = served_name(given);
    for (const std::filesystem::path& path : find_models(given)) {
        models::AnyModel model = models::open_any_model(path);
        const bool is_known = model.gpt ? has_name(texts_, name) : has_name(audios_, name);
        require(!is_known, "--model ", given, ": a model '", name,
                "' of this kind is served already");
        if (model.gpt)
            texts_.push_back({name, std::make_unique<TextModel>(std::move(model.gpt),
                                                                options.text_options(), console)});
        else
            audios_.push_back(
                {name, std::make_unique<AudioModel>(std::move(model.whisper),
                                                    options.audio_options(), console)});
    }
}

void ServedModels::start(const ServeOptions& options, const TextService::Post& post,
                         const std::function<void(const std::string&)>& broken) {
    for (Text& text : texts_)
        text.service = std::make_unique<TextService>(
            *text.model, TextServiceOptions{text.name, options.most_waiting}, post,
            [broken, name = text.name](const std::string& why) { broken(name + ": " + why); });
    for (Audio& audio : audios_)
        audio.service = std::make_unique<AudioService>(
            *audio.model, AudioServiceOptions{audio.name, options.most_waiting, options.most_live},
            post);
}

std::vector<AudioService*> ServedModels::audios() const {
    std::vector<AudioService*> services;
    for (const Audio& audio : audios_) services.push_back(audio.service.get());
    return services;
}

std::vector<TextService*> ServedModels::texts() const {
    std::vector<TextService*> services;
    for (const Text& text : texts_) services.push_back(text.service.get());
    return services;
}

}  // namespace hark::serve
