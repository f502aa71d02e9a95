#include "serve/openai/errors.h"

#include "serve/openai/events.h"

namespace hark::serve {
namespace {

using nlohmann::ordered_json;

const char* type_of(int status) {
    switch (status) {
        case 401:
            return "authentication_error";
        case 403:
            return "permission_error";
        case 404:
            return "not_found_error";
        case 429:
            return "rate_limit_error";
        default:
            return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

ordered_json or_null(const std::string& text) {
    return text.empty() ? ordered_json() : ordered_json(text);
}

}  // namespace

ordered_json error_json(const WebError& why) {
    return {{"error",
             {{"message", why.what()},
              {"type", type_of(why.status)},
              {"param", or_null(why.param)},
              {"code", or_null(why.code)}}}};
}

WebResponse error_response(const WebError& why) {
    WebResponse response{.status = why.status, .body = json_text(error_json(why))};
    if (why.status == 429 || why.status == 503) response.headers.emplace_back("Retry-After", "1");
    if (why.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
    if (!why.allow.empty()) response.headers.emplace_back("Allow", why.allow);
    return response;
}

}  // namespace hark::serve
