#include "serve/models/served_models.h"

#include <algorithm>
#include <utility>

#include "core/models/models.h"
#include "core/ranges.h"
#include "kernels/comm/processes.h"
#include "serve/models/audio_served.h"
#include "serve/models/text_served.h"
#include "serve/serve_options.h"

namespace hark::serve {
namespace {

// What requests call the model: the name as it is given, or a path's last part.
std::string served_name(const std::string& given) {
    std::string path = given;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return is_model_path(given) ? path.substr(path.rfind('/') + 1) : path;
}

// The folders of models are nobody's business but the server's.
std::string without_folders(std::string text) {
    for (const std::filesystem::path& folder : model_folders())
        for (const std::string& begin : {folder.string() + "/", model_key(folder) + "/"})
            for (size_t at = 0; (at = text.find(begin, at)) != text.npos;)
                text.erase(at, begin.size());
    return text;
}

// What is listed as that name; a new entry if there is none.
ListedModel& entry_of(const std::string& name, std::vector<ListedModel>& models) {
    for (ListedModel& model : models)
        if (model.name == name) return model;
    return models.emplace_back(ListedModel{name, {}, {}, false});
}

// A request whose model is a Served: it uses that one's service.
template <class Served, class Use>
ModelRequest request_of(ModelKind kind, Use then) {
    ModelRequest request{.kind = kind};
    request.use = [then = std::move(then)](ServedModel& model, ModelLease lease) {
        then(static_cast<Served&>(model).service(), std::move(lease));
    };
    return request;
}

}  // namespace

ServedModels::ServedModels(const ServeOptions& options, Console& console)
    : options_(options),
      console_(console),
      reader_(options, console),
      installed_(std::make_shared<InstalledModels>(options.text.context)) {
    read_named(options.models);
}

void ServedModels::read_named(const std::vector<std::string>& models) {
    std::vector<OpenedModel> opened;
    for (const std::string& given : models)
        for (const std::filesystem::path& path : find_models(given)) {
            opened.push_back(reader_.open(path.string(), true));
            const Named named{served_name(given), model_key(path), opened.back().facts.kind,
                              nullptr, opened.back().facts};
            const bool is_known = std::any_of(named_.begin(), named_.end(), [&](const Named& one) {
                return one.name == named.name && one.kind == named.kind;
            });
            require(!is_known, "--model ", given, ": a model '", named.name,
                    "' of this kind is served already");
            named_.push_back(named);
        }
    check_ranks();
    const std::vector<int64_t> shares = cache_shares(opened);
    for (size_t i = 0; i < opened.size(); ++i)
        if (named_[i].kind == ModelKind::text || options_.text.ranks->first())
            named_[i].model = reader_.read(named_[i].name, opened[i], shares[i]);
}

void ServedModels::check_ranks() const {
    Communicator& ranks = *options_.text.ranks;
    if (ranks.alone()) return;
    const auto texts = std::count_if(named_.begin(), named_.end(), [](const Named& named) {
        return named.kind == ModelKind::text;
    });
    require(texts == 1, "several processes compute one language model (--model names ", texts, ")");
    std::string models;
    for (const Named& named : named_) models += concat(", --model ", named.name);
    expect_agreement(
        ranks, concat("--dtype ", options_.compute.dtype, ", --context ", options_.text.context,
                      ", --max-sequences ", options_.text.max_sequences, ", --batch-invariant ",
                      options_.text.batch_invariant, ", --memory-fraction ",
                      options_.memory_fraction, ", on ", reader_.computes_with(), models));
}

void ServedModels::follow() {
    for (const Named& named : named_)
        if (named.kind == ModelKind::text) static_cast<TextServed&>(*named.model).follow();
}

std::vector<int64_t> ServedModels::cache_shares(const std::vector<OpenedModel>& opened) const {
    std::vector<ModelNeed> needs;
    int64_t rest = reader_.memory(), smallest = 0, least = 0;
    for (const OpenedModel& one : opened) {
        needs.push_back(one.need);
        rest -= one.need.weights + one.need.scratch;
        smallest += one.need.smallest();
        least += one.need.least;
    }
    require(smallest <= reader_.memory(), "no memory for the models: they need ",
            gigabytes(smallest), ", and may take ", gigabytes(reader_.memory()),
            "; give fewer --model, smaller ones, or another --memory-fraction");
    // Half of what is left is for models that requests name.
    return share_caches(options_.only_named ? rest : std::max(rest / 2, least), needs);
}

void ServedModels::start(ServerThread thread) {
    post_ = thread.post;
    const auto tell = [this](const std::string& name, const auto& work) {
        try {
            return work();
        } catch (const std::exception& why) {
            if (is_out_of_memory(why)) throw;
            throw unreadable(name, why.what());
        }
    };
    pool_ = std::make_unique<ModelPool>(ModelPoolOptions{
        .memory = reader_.memory(),
        .keep_seconds = options_.keep_seconds,
        .most_waiting = std::max<int64_t>(options_.most_waiting, 1),
        .open =
            [this, tell](const std::string& name, const std::string& path) {
                return tell(name, [&] { return reader_.open(path, false); });
            },
        .read =
            [this, tell](const std::string& name, const OpenedModel& opened, int64_t cache_bytes) {
                return tell(name, [&] { return reader_.read(name, opened, cache_bytes); });
            },
        .post = thread.post,
        .post_later = thread.post_later});
    reader_.use(std::move(thread));
    for (Named& named : named_) {
        named.model->begin();
        pool_->add(named.path, named.name, std::move(named.model));
    }
}

WebError ServedModels::unreadable(const std::string& name, const std::string& why) const {
    const std::string text = concat("the model '", name, "' cannot be read: ");
    console_.warning(text + why);
    return WebError(500, text + without_folders(why), "model", "model_not_readable");
}

ServedModels::Place ServedModels::place_of(const std::string& name, ModelKind kind) const {
    for (const Named& named : named_)
        if (named.name == name && named.kind == kind) return {named.path, named.name};
    for (const ModelPool::Loaded& loaded : pool_->loaded())
        if (loaded.name == name && loaded.model->kind() == kind) return {loaded.path, name};
    try {
        if (!options_.only_named)
            if (const auto found = find_listed_model(name, name_of(kind)))
                return {model_key(found->path), found->name};
    } catch (const Error& why) {
        throw unreadable(name, why.what());
    }
    throw WebError(404,
                   concat("no ", kind == ModelKind::text ? "language" : "Whisper", " model '", name,
                          "' is served; /v1/models has the list"),
                   "model", "model_not_found");
}

void ServedModels::use(const std::string& name, ModelRequest request, ModelWait wait) {
    const Place place = place_of(name, request.kind);
    request.refuse = std::move(wait.refuse);
    request.is_wanted = std::move(wait.is_wanted);
    pool_->use(place.path, place.name, std::move(request));
}

void ServedModels::use_text(const std::string& name, Use<TextService> then, ModelWait wait) {
    use(name, request_of<TextServed>(ModelKind::text, std::move(then)), std::move(wait));
}

void ServedModels::use_audio(const std::string& name, Use<AudioService> then, ModelWait wait) {
    use(name, request_of<AudioServed>(ModelKind::audio, std::move(then)), std::move(wait));
}

std::vector<ListedModel> ServedModels::all(std::vector<ListedModel> installed) const {
    std::vector<ListedModel> models;
    std::vector<std::string> named;
    for (const Named& one : named_) {
        ListedModel& listed = entry_of(one.name, models);
        listed.paths.push_back(one.path);
        listed.facts.push_back(one.facts);
        listed.is_loaded = true;
        named.push_back(one.path);
    }
    for (ListedModel& one : installed) {
        if (contains(named, one.paths.front())) continue;
        ListedModel& listed = entry_of(one.name, models);
        const bool is_hidden = std::any_of(
            listed.facts.begin(), listed.facts.end(),
            [&](const ModelFacts& facts) { return facts.kind == one.facts.front().kind; });
        if (is_hidden) continue;
        listed.paths.push_back(one.paths.front());
        listed.facts.push_back(std::move(one.facts.front()));
        listed.is_loaded = listed.is_loaded || is_loaded(one.paths.front());
    }
    return models;
}

bool ServedModels::is_loaded(const std::string& path) const {
    const std::vector<ModelPool::Loaded> loaded = pool_->loaded();
    return std::any_of(loaded.begin(), loaded.end(),
                       [&](const ModelPool::Loaded& one) { return one.path == path; });
}

void ServedModels::list(std::function<void(std::vector<ListedModel>)> then) {
    if (options_.only_named) return then(all({}));
    lister_.add([this, installed = installed_, then = std::move(then)] {
        post_([this, found = installed->list(), then] { then(all(found)); });
    });
}

void ServedModels::find(const std::string& name, std::function<void(const ListedModel*)> then) {
    list([this, name, then = std::move(then)](const std::vector<ListedModel>& models) {
        for (const ListedModel& model : models)
            if (model.name == name) return then(&model);
        ListedModel meant{name, {}, {}, false};
        for (const ModelKind kind : {ModelKind::text, ModelKind::audio}) try {
                const std::string path = place_of(name, kind).path;
                if (contains(meant.paths, path)) continue;
                for (const ListedModel& model : models)
                    for (size_t i = 0; i < model.paths.size(); ++i) {
                        if (model.paths[i] != path) continue;
                        meant.paths.push_back(path);
                        meant.facts.push_back(model.facts[i]);
                        meant.is_loaded = meant.is_loaded || is_loaded(path);
                    }
            } catch (const WebError&) {  // there is none of that kind
            }
        then(meant.paths.empty() ? nullptr : &meant);
    });
}

void ServedModels::write_metrics(MetricsText& text) const {
    for (const ModelPool::Loaded& one : pool_->loaded()) {
        text.begin_labels(metric_label("model_name", one.name));
        if (auto* const model = dynamic_cast<TextServed*>(one.model))
            model->service().metrics().write(text);
        if (auto* const model = dynamic_cast<AudioServed*>(one.model))
            model->service().metrics().write(text);
    }
    for (const auto& [name, counts] : pool_->counts()) {
        text.begin_labels(metric_label("model_name", name));
        text.add("model_loaded", "gauge", static_cast<double>(counts.loaded));
        text.add("model_memory_bytes", "gauge", static_cast<double>(counts.bytes));
        text.add("model_loads_total", "counter", static_cast<double>(counts.loads));
        text.add("model_unloads_total", "counter", static_cast<double>(counts.unloads));
        text.add("model_load_failures_total", "counter", static_cast<double>(counts.failures));
    }
    text.begin_labels("");
    text.add("memory_limit_bytes", "gauge", static_cast<double>(pool_->memory()));
}

}  // namespace hark::serve
