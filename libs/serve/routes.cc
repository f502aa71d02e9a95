#include "serve/routes.h"

#include <ctime>
#include <utility>

#include "core/ranges.h"
#include "serve/audio/audio_service.h"
#include "serve/models/served_models.h"
#include "serve/openai/errors.h"
#include "serve/openai/events.h"
#include "serve/openai/live_answer.h"
#include "serve/openai/requests.h"
#include "serve/openai/text_answer.h"
#include "serve/openai/transcripts.h"
#include "serve/page/page_files.h"
#include "serve/text/text_model.h"
#include "serve/text/text_service.h"
#include "serve/web/paths.h"

namespace hark::serve {
namespace {

using nlohmann::ordered_json;

const std::string kProtocol = "hark";  // of WebSockets

WebResponse json_response(const ordered_json& root, int status = 200) {
    return {.status = status, .body = json_text(root)};
}

// Sends the error.
std::function<void(const WebError&)> refusing(std::shared_ptr<WebAnswer> out) {
    return [out = std::move(out)](const WebError& why) { out->send(error_response(why)); };
}

bool fits(std::string_view path, std::string_view pattern) {
    const bool has_any_end = pattern.size() > 1 && pattern.ends_with('/');
    return path == pattern || (has_any_end && path.starts_with(pattern));
}

ordered_json embeddings_json(const EmbeddingQuery& query, const TextService::Embedded& embedded) {
    ordered_json data = ordered_json::array();
    for (const std::vector<float>& vector : embedded.vectors) {
        const ordered_json value =
            query.is_base64 ? ordered_json(base64_of(vector)) : ordered_json(vector);
        data.push_back({{"object", "embedding"}, {"index", data.size()}, {"embedding", value}});
    }
    const ordered_json usage = {{"prompt_tokens", embedded.tokens},
                                {"total_tokens", embedded.tokens}};
    return {{"object", "list"}, {"data", data}, {"model", query.model}, {"usage", usage}};
}

bool is_json(std::string_view content_type) { return content_type.starts_with("application/json"); }

}  // namespace

const Routes::Route Routes::kRoutes[] = {
    {"POST", "/v1/chat/completions", Route::Body::json, Route::Access::key, &Routes::chat},
    {"POST", "/v1/completions", Route::Body::json, Route::Access::key, &Routes::complete},
    {"POST", "/v1/embeddings", Route::Body::json, Route::Access::key, &Routes::embed},
    {"POST", "/v1/audio/transcriptions", Route::Body::form, Route::Access::key,
     &Routes::transcribe},
    {"POST", "/v1/audio/translations", Route::Body::form, Route::Access::key, &Routes::translate},
    {"GET", "/v1/audio/live", Route::Body::socket, Route::Access::key, nullptr},
    {"POST", "/tokenize", Route::Body::json, Route::Access::key, &Routes::tokenize},
    {"POST", "/detokenize", Route::Body::json, Route::Access::key, &Routes::detokenize},
    {"GET", "/v1/models", Route::Body::none, Route::Access::key, &Routes::list_models},
    {"GET", "/v1/models/", Route::Body::none, Route::Access::key, &Routes::show_model},
    {"GET", "/metrics", Route::Body::none, Route::Access::key, &Routes::metrics},
    {"GET", "/", Route::Body::none, Route::Access::anyone, &Routes::show_page},
    {"GET", "/page/", Route::Body::none, Route::Access::anyone, &Routes::show_page},
    {"GET", "/health", Route::Body::none, Route::Access::always, &Routes::health},
};

Routes::Routes(ApiOptions options, ServedModels& models)
    : options_(std::move(options)),
      models_(models),
      started_(static_cast<int64_t>(std::time(nullptr))) {}

const Routes::Route& Routes::route_of(const WebRequest& request) const {
    std::string methods;
    for (const Route& route : kRoutes) {
        if (!fits(request.path, route.path)) continue;
        if (request.method == route.method) return route;
        methods += (methods.empty() ? "" : ", ") + std::string(route.method);
    }
    if (methods.empty()) throw WebError(404, "no such path; docs/serve.md has the list");
    WebError wrong(405, concat("this path takes ", methods));
    wrong.allow = methods;
    throw wrong;
}

bool Routes::needs_key(const std::string& path) {
    for (const Route& route : kRoutes)
        if (fits(path, route.path) && route.access != Route::Access::key) return false;
    return true;
}

BodyRule Routes::receive(const WebRequest& head) {
    if (needs_key(head.path) && !options_.keys.accept(head.authorization) &&
        !options_.keys.accept_any(head.protocols))
        throw WebError(401, "a valid key is required: Authorization: Bearer KEY", "",
                       "invalid_api_key");
    if (options_.checks_host && !is_local_host(head.host))
        throw WebError(403, concat("Host: expected an address or localhost, found '", head.host,
                                   "'; names need a server with --api-keys"));
    const Route& route = route_of(head);
    if (is_draining_ && route.access != Route::Access::always)
        throw WebError(503, "the server is about to end");
    if (route.body == Route::Body::none) return {};
    // A browser asks before a foreign page's script sends JSON, and no route allows it.
    if (route.body != Route::Body::json) check_origin(head);
    if (route.body == Route::Body::socket)
        return {.is_socket = true,
                .protocol = contains(head.protocols, kProtocol) ? kProtocol : ""};
    if (route.body == Route::Body::form)
        return {.most_bytes = options_.most_form_bytes, .is_form = true};
    if (!is_json(head.content_type))
        throw WebError(415,
                       concat("Content-Type: expected application/json, found '", head.content_type,
                              "'; with curl give -H 'Content-Type: application/json'"));
    return {.most_bytes = options_.most_json_bytes};
}

void Routes::check_origin(const WebRequest& head) const {
    // Any page's script may open a WebSocket of this machine, and read what it sends; and any page
    // may send a form.
    if (options_.keys.empty() && !head.origin.empty() && !is_own_origin(head.origin, head.host))
        throw WebError(403, concat("Origin: expected that of the server's own page, found '",
                                   head.origin, "'; others need a server with --api-keys"));
}

std::shared_ptr<SocketListener> Routes::open(WebRequest request,
                                             std::shared_ptr<WebSocket> socket) {
    LiveQuery query = read_live_query(request.query);
    const std::string model = query.model;
    const auto answer = std::make_shared<LiveAnswer>(std::move(query), std::move(socket));
    models_.use_audio(model,
                      [answer](AudioService& service, ModelLease lease) {
                          answer->start(service, std::move(lease));
                      },
                      {.refuse = [answer](const WebError& why) { answer->failed(why); },
                       .is_wanted = [answer] { return !answer->has_left(); }});
    std::erase_if(live_, [](const std::weak_ptr<LiveAnswer>& one) { return one.expired(); });
    live_.push_back(answer);
    return answer;
}

void Routes::drain() {
    is_draining_ = true;
    models_.drain();
    for (const std::weak_ptr<LiveAnswer>& one : live_)
        if (const auto answer = one.lock()) answer->drain();
}

void Routes::answer(WebRequest request, Out out) {
    (this->*route_of(request).handler)(request, std::move(out));
}

WebResponse Routes::refusal(const WebError& why) const { return error_response(why); }

ModelWait Routes::wait_of(const Out& out) {
    const auto has_left = std::make_shared<bool>(false);
    out->when_left([has_left] { *has_left = true; });
    return {.refuse = refusing(out), .is_wanted = [has_left] { return !*has_left; }};
}

void Routes::answer_text(TextQuery query, Out out) {
    const std::string model = query.model;
    ModelWait wait = wait_of(out);
    models_.use_text(
        model,
        [query = std::move(query), out](TextService& service, ModelLease lease) {
            TextAnswer::start(service, std::move(lease), query, out);
        },
        std::move(wait));
}

void Routes::chat(const WebRequest& request, Out out) {
    answer_text(read_chat(request.body), std::move(out));
}

void Routes::complete(const WebRequest& request, Out out) {
    answer_text(read_completion(request.body), std::move(out));
}

void Routes::embed(const WebRequest& request, Out out) {
    const EmbeddingQuery query = read_embedding(request.body);
    models_.use_text(
        query.model,
        [query, out](TextService& service, const ModelLease& lease) {
            const auto use = [out, query, lease](const TextService::Embedded& embedded) {
                out->send(json_response(embeddings_json(query, embedded)));
            };
            service.embed(query.texts, query.dimensions, use,
                          [out, lease](const WebError& why) { out->send(error_response(why)); });
        },
        wait_of(out));
}

void Routes::tokenize(const WebRequest& request, Out out) {
    const TokenizeQuery query = read_tokenize(request.body);
    models_.use_text(
        query.model,
        [query, out](TextService& service, const ModelLease& lease) {
            service.prepare(
                [&tokenizer = service.model().tokenizer(), query, out, lease] {
                    const ordered_json ids =
                        tokenizer.encode(query.text, {.add_specials = query.add_specials});
                    return [out, ids, lease] {
                        out->send(json_response({{"count", ids.size()}, {"tokens", ids}}));
                    };
                },
                refusing(out));
        },
        wait_of(out));
}

void Routes::detokenize(const WebRequest& request, Out out) {
    const DetokenizeQuery query = read_detokenize(request.body);
    models_.use_text(
        query.model,
        [query, out](TextService& service, const ModelLease& lease) {
            service.model().check_tokens(query.ids, "tokens");
            service.prepare(
                [&tokenizer = service.model().tokenizer(), query, out, lease] {
                    const std::string text = tokenizer.decode(query.ids, true);
                    return [out, text, lease] { out->send(json_response({{"prompt", text}})); };
                },
                refusing(out));
        },
        wait_of(out));
}

void Routes::transcribe(const WebRequest& request, Out out) {
    answer_audio(request, "transcribe", std::move(out));
}

void Routes::translate(const WebRequest& request, Out out) {
    answer_audio(request, "translate", std::move(out));
}

void Routes::answer_audio(const WebRequest& request, const std::string& task, Out out) {
    const AudioQuery query = read_audio_query(request.form, task);
    models_.use_audio(
        query.model,
        [query, file = request.form.file, out](AudioService& service, ModelLease lease) {
            TranscriptAnswer::start(service, std::move(lease), query, file, out);
        },
        wait_of(out));
}

ordered_json Routes::model_json(const std::string& id, const ListedModel& model) const {
    ordered_json root = {{"id", id},
                         {"object", "model"},
                         {"created", started_},
                         {"owned_by", "hark"},
                         {"loaded", model.is_loaded}};
    ordered_json endpoints = ordered_json::array();
    for (const ModelFacts& facts : model.facts) {
        if (facts.kind != ModelKind::text) continue;
        if (facts.has_chats) endpoints.push_back("/v1/chat/completions");
        for (const char* const path : {"/v1/completions", "/v1/embeddings"})
            endpoints.push_back(path);
        root["max_model_len"] = facts.context;
    }
    for (const ModelFacts& facts : model.facts) {
        if (facts.kind != ModelKind::audio) continue;
        endpoints.push_back("/v1/audio/transcriptions");
        if (facts.languages.size() > 1) endpoints.push_back("/v1/audio/translations");
        endpoints.push_back("/v1/audio/live");
        root["languages"] = facts.languages;
    }
    root["endpoints"] = endpoints;
    return root;
}

void Routes::list_models(const WebRequest&, Out out) {
    models_.list([this, out](const std::vector<ListedModel>& models) {
        ordered_json data = ordered_json::array();
        for (const ListedModel& model : models) data.push_back(model_json(model.name, model));
        out->send(json_response({{"object", "list"}, {"data", data}}));
    });
}

void Routes::show_model(const WebRequest& request, Out out) {
    const std::string id = request.path.substr(std::string_view("/v1/models/").size());
    models_.find(id, [this, id, out](const ListedModel* model) {
        if (model) return out->send(json_response(model_json(id, *model)));
        out->send(error_response(
            WebError(404, concat("no model '", id, "' is served"), "model", "model_not_found")));
    });
}

void Routes::show_page(const WebRequest& request, Out out) { out->send(page_file(request.path)); }

void Routes::health(const WebRequest&, Out out) {
    if (is_draining_) throw WebError(503, "the server is about to end");
    out->send(json_response({{"status", "ok"}}));
}

void Routes::metrics(const WebRequest&, Out out) {
    MetricsText text;
    models_.write_metrics(text);
    out->send({.content_type = "text/plain; version=0.0.4", .body = text.text()});
}

}  // namespace hark::serve
