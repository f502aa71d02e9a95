// The endpoints: which path is answered by what.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "serve/api_options.h"
#include "serve/web/message.h"

namespace hark::serve {

struct ListedModel;
class LiveAnswer;
struct ModelWait;
class ServedModels;
struct TextQuery;

class Routes : public WebSite {
  public:
    // The models must outlive it.
    Routes(ApiOptions options, ServedModels& models);

    BodyRule receive(const WebRequest& head) override;
    void answer(WebRequest request, std::shared_ptr<WebAnswer> answer) override;
    std::shared_ptr<SocketListener> open(WebRequest request,
                                         std::shared_ptr<WebSocket> socket) override;
    WebResponse refusal(const WebError& why) const override;
    void drain() override;

  private:
    using Out = std::shared_ptr<WebAnswer>;
    struct Route {
        const char *method, *path;  // a path that ends with / has any continuation
        enum class Body { none, json, form, socket } body;
        enum class Access { key, anyone, always } access;  // always: while the server ends, too
        void (Routes::*handler)(const WebRequest& request, Out out);  // null: a WebSocket
    };
    static const Route kRoutes[];

    static bool needs_key(const std::string& path);
    // Throws WebError 403 for a page of another server, unless there are keys.
    void check_origin(const WebRequest& head) const;
    // Throws WebError 404 and 405.
    const Route& route_of(const WebRequest& request) const;
    // What a request waits with for its model.
    static ModelWait wait_of(const Out& out);

    void chat(const WebRequest& request, Out out);
    void complete(const WebRequest& request, Out out);
    void embed(const WebRequest& request, Out out);
    void tokenize(const WebRequest& request, Out out);
    void detokenize(const WebRequest& request, Out out);
    void transcribe(const WebRequest& request, Out out);
    void translate(const WebRequest& request, Out out);
    void answer_text(TextQuery query, Out out);
    void answer_audio(const WebRequest& request, const std::string& task, Out out);
    void list_models(const WebRequest& request, Out out);
    void show_model(const WebRequest& request, Out out);
    void show_page(const WebRequest& request, Out out);
    void health(const WebRequest& request, Out out);
    void metrics(const WebRequest& request, Out out);

    nlohmann::ordered_json model_json(const std::string& id, const ListedModel& model) const;

    ApiOptions options_;
    ServedModels& models_;
    int64_t started_;  // seconds since 1970
    bool is_draining_ = false;
    std::vector<std::weak_ptr<LiveAnswer>> live_;
};

}  // namespace hark::serve
