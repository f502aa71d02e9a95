// Errors in OpenAI's form.
#pragma once

#include <string>

#include "core/json/json.h"
#include "serve/web/message.h"

namespace hark::serve {

// {"error": {"message", "type", "param", "code"}}
nlohmann::ordered_json error_json(const WebError& why);
// The whole answer, with Retry-After where another attempt may succeed.
WebResponse error_response(const WebError& why);

}  // namespace hark::serve
