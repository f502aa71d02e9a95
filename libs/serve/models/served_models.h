// The models of a server, by the names that requests give them.
//
//     use_text("small") -> path -> ModelPool -> TextService
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/models/model_list.h"
#include "serve/models/model_pool.h"
#include "serve/models/model_reader.h"

namespace hark {
class MetricsText;
}

namespace hark::serve {

class AudioService;
class TextService;

// A request that may have to wait for its model.
struct ModelWait {
    std::function<void(const WebError&)> refuse;
    std::function<bool()> is_wanted;  // whether its client is still there
};

class ServedModels {
  public:
    // Reads the models that the options name. Throws Error naming the one that cannot be read, for
    // two models of one kind with the same name, and if the memory does not suffice. Several ranks
    // have one language model together; the first one has the Whisper models. Holds references.
    ServedModels(const ServeOptions& options, Console& console);

    // On ranks other than the first, in place of all else: computes what that one does until it
    // has ended its models. Throws Error if it ends otherwise.
    void follow();

    // The rest is for the server's thread.

    // Before the first request.
    void start(ServerThread thread);
    // Calls use() with the model, now if it is in memory, else once it has been read; what it
    // throws then is told by refuse(). The model stays as long as its lease is held. Throws
    // WebError 404 if there is no model of that name and kind, and 429, 500 or 503 if the request
    // cannot wait for it.
    template <class Service>
    using Use = std::function<void(Service&, ModelLease)>;
    void use_text(const std::string& name, Use<TextService> use, ModelWait wait);
    void use_audio(const std::string& name, Use<AudioService> use, ModelWait wait);
    // Calls use() with the models that requests may name, those of the command line first.
    void list(std::function<void(std::vector<ListedModel>)> use);
    // As list(), with the one model that requests mean by that name, or none.
    void find(const std::string& name, std::function<void(const ListedModel*)> use);
    void write_metrics(MetricsText& text) const;
    // Requests that wait for a model which is not being read are refused.
    void drain() { pool_->drain(); }

  private:
    struct Named {
        std::string name, path;
        ModelKind kind = ModelKind::text;
        std::shared_ptr<ServedModel> model;
        ModelFacts facts;
    };

    void read_named(const std::vector<std::string>& given);
    void check_ranks() const;
    std::vector<int64_t> cache_shares(const std::vector<OpenedModel>& opened) const;
    // The model of that name, whatever else it is called. Throws WebError 404 and 500.
    struct Place {
        std::string path, name;
    };
    Place place_of(const std::string& name, ModelKind kind) const;
    void use(const std::string& name, ModelRequest request, ModelWait wait);
    // Those of the command line, then the installed ones.
    std::vector<ListedModel> all(std::vector<ListedModel> installed) const;
    bool is_loaded(const std::string& path) const;
    // Why the model cannot be read, for its requests; the operator is told more.
    WebError unreadable(const std::string& name, const std::string& why) const;

    const ServeOptions& options_;
    Console& console_;
    ModelReader reader_;
    std::vector<Named> named_;
    std::shared_ptr<InstalledModels> installed_;  // for the lister's thread
    std::function<void(std::function<void()>)> post_;
    std::unique_ptr<ModelPool> pool_;
    Worker lister_;
};

}  // namespace hark::serve
