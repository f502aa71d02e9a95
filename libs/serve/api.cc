#include "serve/api.h"

#include <ctime>
#include <utility>

#include "core/ranges.h"
#include "serve/openai/errors.h"
#include "serve/openai/events.h"
#include "serve/openai/requests.h"
#include "serve/openai/text_answer.h"
#include "serve/openai/transcripts.h"
#include "serve/page/page_files.h"
#include "serve/web/paths.h"

namespace hark::serve {
namespace {

using nlohmann::ordered_json;

const std::string kProtocol = "hark";  // of WebSockets

WebResponse json_response(const ordered_json& root, int status = 200) {
    return {.status = status, .body = dumped(root)};
}

bool fits(std::string_view path, std::string_view pattern) {
    const bool has_any_end = pattern.size() > 1 && pattern.ends_with('/');
    return path == pattern || (has_any_end && path.starts_with(pattern));
}

bool is_json(std::string_view content_type) { return content_type.starts_with("application/json"); }

}  // namespace

const Api::Route Api::kRoutes[] = {
    {"POST", "/v1/chat/completions", Route::Body::json, Route::Access::key, &Api::chat},
    {"POST", "/v1/completions", Route::Body::json, Route::Access::key, &Api::complete},
    {"POST", "/v1/embeddings", Route::Body::json, Route::Access::key, &Api::embed},
    {"POST", "/v1/audio/transcriptions", Route::Body::form, Route::Access::key, &Api::transcribe},
    {"POST", "/v1/audio/translations", Route::Body::form, Route::Access::key, &Api::translate},
    {"GET", "/v1/audio/live", Route::Body::socket, Route::Access::key, nullptr},
    {"POST", "/tokenize", Route::Body::json, Route::Access::key, &Api::tokenize},
    {"POST", "/detokenize", Route::Body::json, Route::Access::key, &Api::detokenize},
    {"GET", "/v1/models", Route::Body::none, Route::Access::key, &Api::list_models},
    {"GET", "/v1/models/", Route::Body::none, Route::Access::key, &Api::show_model},
    {"GET", "/metrics", Route::Body::none, Route::Access::key, &Api::metrics},
    {"GET", "/", Route::Body::none, Route::Access::anyone, &Api::show_page},
    {"GET", "/page/", Route::Body::none, Route::Access::anyone, &Api::show_page},
    {"GET", "/health", Route::Body::none, Route::Access::always, &Api::health},
};

Api::Api(ApiOptions options, std::vector<TextService*> texts, std::vector<AudioService*> audios)
    : options_(std::move(options)),
      texts_(std::move(texts)),
      audios_(std::move(audios)),
      started_(static_cast<int64_t>(std::time(nullptr))) {}

const Api::Route& Api::route_of(const WebRequest& request) const {
    std::string methods;
    for (const Route& route : kRoutes) {
        if (!fits(request.path, route.path)) continue;
        if (request.method == route.method) return route;
        methods += (methods.empty() ? "" : ", ") + std::string(route.method);
    }
    if (methods.empty()) throw WebError(404, "no such path; docs/serve.md has the list");
    throw WebError(405, concat("this path takes ", methods));
}

bool Api::needs_key(const std::string& path) {
    for (const Route& route : kRoutes)
        if (fits(path, route.path) && route.access != Route::Access::key) return false;
    return true;
}

BodyRule Api::receive(const WebRequest& head) {
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
    if (route.body == Route::Body::socket) return socket_rule(head);
    if (route.body == Route::Body::form)
        return {.most_bytes = options_.most_form_bytes, .is_form = true};
    if (!is_json(head.content_type))
        throw WebError(415,
                       concat("Content-Type: expected application/json, found '", head.content_type,
                              "'; with curl give -H 'Content-Type: application/json'"));
    return {.most_bytes = options_.most_json_bytes};
}

BodyRule Api::socket_rule(const WebRequest& head) const {
    // Any page's script may open a WebSocket of this machine, and read what it sends.
    if (options_.keys.empty() && !head.origin.empty() && !is_own_origin(head.origin, head.host))
        throw WebError(403, concat("Origin: expected that of the server's own page, found '",
                                   head.origin, "'; others need a server with --api-keys"));
    return {.is_socket = true, .protocol = contains(head.protocols, kProtocol) ? kProtocol : ""};
}

std::shared_ptr<SocketListener> Api::open(WebRequest request, std::shared_ptr<WebSocket> socket) {
    LiveQuery query = read_live_query(request.query);
    AudioService& service = audio_service(query.model);
    auto answer = LiveAnswer::start(service, std::move(query), std::move(socket));
    std::erase_if(live_, [](const std::weak_ptr<LiveAnswer>& one) { return one.expired(); });
    live_.push_back(answer);
    return answer;
}

void Api::drain() {
    is_draining_ = true;
    for (const std::weak_ptr<LiveAnswer>& one : live_)
        if (const auto answer = one.lock()) answer->drain();
}

void Api::answer(WebRequest request, Out out) {
    try {
        (this->*route_of(request).handler)(request, std::move(out));
    } catch (const WebError&) {
        throw;
    } catch (const std::exception& failure) {
        throw WebError(500, failure.what());
    }
}

WebResponse Api::refusal(const WebError& why) const { return error_response(why); }

TextService& Api::text_service(const std::string& model) const {
    for (TextService* const service : texts_)
        if (service->name() == model) return *service;
    throw WebError(404,
                   concat("no language model '", model, "' is served; /v1/models has the list"),
                   "model", "model_not_found");
}

AudioService& Api::audio_service(const std::string& model) const {
    for (AudioService* const service : audios_)
        if (service->name() == model) return *service;
    throw WebError(404, concat("no Whisper model '", model, "' is served; /v1/models has the list"),
                   "model", "model_not_found");
}

void Api::chat(const WebRequest& request, Out out) {
    TextQuery query = read_chat(request.body);
    TextService& service = text_service(query.model);
    TextAnswer::start(service, std::move(query), std::move(out));
}

void Api::complete(const WebRequest& request, Out out) {
    TextQuery query = read_completion(request.body);
    TextService& service = text_service(query.model);
    TextAnswer::start(service, std::move(query), std::move(out));
}

void Api::embed(const WebRequest& request, Out out) {
    EmbeddingQuery query = read_embedding(request.body);
    const auto use = [out, model = query.model,
                      is_base64 = query.is_base64](const TextService::Embedded& embedded) {
        ordered_json data = ordered_json::array();
        for (const std::vector<float>& vector : embedded.vectors) {
            const ordered_json value =
                is_base64 ? ordered_json(base64_of(vector)) : ordered_json(vector);
            data.push_back({{"object", "embedding"}, {"index", data.size()}, {"embedding", value}});
        }
        const ordered_json usage = {{"prompt_tokens", embedded.tokens},
                                    {"total_tokens", embedded.tokens}};
        out->send(json_response(
            {{"object", "list"}, {"data", data}, {"model", model}, {"usage", usage}}));
    };
    text_service(query.model)
        .embed(std::move(query.texts), query.dimensions, use,
               [out](const WebError& why) { out->send(error_response(why)); });
}

void Api::tokenize(const WebRequest& request, Out out) {
    const TokenizeQuery query = read_tokenize(request.body);
    TextService& service = text_service(query.model);
    service.prepare([&tokenizer = service.model().tokenizer(), query, out] {
        const ordered_json ids = tokenizer.encode(query.text, {.add_specials = query.add_specials});
        return [out, ids] { out->send(json_response({{"count", ids.size()}, {"tokens", ids}})); };
    });
}

void Api::detokenize(const WebRequest& request, Out out) {
    const DetokenizeQuery query = read_detokenize(request.body);
    TextService& service = text_service(query.model);
    const Tokenizer& tokenizer = service.model().tokenizer();
    for (const int32_t id : query.ids)
        if (!tokenizer.has(id)) throw WebError(400, concat("tokens: no token ", id), "tokens");
    service.prepare([&tokenizer, query, out] {
        const std::string text = tokenizer.decode(query.ids, true);
        return [out, text] { out->send(json_response({{"prompt", text}})); };
    });
}

void Api::transcribe(const WebRequest& request, Out out) {
    answer_audio(request, "transcribe", std::move(out));
}

void Api::translate(const WebRequest& request, Out out) {
    answer_audio(request, "translate", std::move(out));
}

void Api::answer_audio(const WebRequest& request, const std::string& task, Out out) {
    AudioQuery query = read_audio_query(request.form, task);
    AudioService& service = audio_service(query.model);
    TranscriptAnswer::start(service, std::move(query), request.form.file, std::move(out));
}

std::vector<std::string> Api::model_names() const {
    std::vector<std::string> names;
    for (const TextService* const service : texts_) names.push_back(service->name());
    for (const AudioService* const service : audios_)
        if (!contains(names, service->name())) names.push_back(service->name());
    return names;
}

ordered_json Api::model_json(const std::string& id) const {
    ordered_json model = {
        {"id", id}, {"object", "model"}, {"created", started_}, {"owned_by", "hark"}};
    ordered_json endpoints = ordered_json::array();
    for (const TextService* const service : texts_) {
        if (service->name() != id) continue;
        if (service->model().has_chats()) endpoints.push_back("/v1/chat/completions");
        for (const char* const path : {"/v1/completions", "/v1/embeddings"})
            endpoints.push_back(path);
        model["max_model_len"] = service->model().context();
    }
    for (const AudioService* const service : audios_) {
        if (service->name() != id) continue;
        const std::vector<std::string> languages = service->model().languages();
        endpoints.push_back("/v1/audio/transcriptions");
        if (languages.size() > 1) endpoints.push_back("/v1/audio/translations");
        endpoints.push_back("/v1/audio/live");
        model["languages"] = languages;
    }
    model["endpoints"] = endpoints;
    return model;
}

void Api::list_models(const WebRequest&, Out out) {
    ordered_json data = ordered_json::array();
    for (const std::string& name : model_names()) data.push_back(model_json(name));
    out->send(json_response({{"object", "list"}, {"data", data}}));
}

void Api::show_model(const WebRequest& request, Out out) {
    const std::string id = request.path.substr(std::string_view("/v1/models/").size());
    const std::vector<std::string> names = model_names();
    if (!contains(names, id))
        throw WebError(404, concat("no model '", id, "' is served"), "model", "model_not_found");
    out->send(json_response(model_json(id)));
}

void Api::show_page(const WebRequest& request, Out out) { out->send(page_file(request.path)); }

void Api::health(const WebRequest&, Out out) {
    if (is_draining_) throw WebError(503, "the server is about to end");
    out->send(json_response({{"status", "ok"}}));
}

void Api::metrics(const WebRequest&, Out out) {
    MetricsText text;
    for (TextService* const service : texts_) {
        text.begin_model(service->name());
        service->metrics().write(text);
    }
    for (AudioService* const service : audios_) {
        text.begin_model(service->name());
        service->metrics().write(text);
    }
    out->send({.content_type = "text/plain; version=0.0.4", .body = text.text()});
}

}  // namespace hark::serve
