// Errors in OpenAI's form.
#pragma once

#include <string>

#include "serve/web/message.h"

namespace hark::serve {

// {"error": {"message", "type", "param", "code"}}
std::string error_json(const WebError& why);
// The whole answer, with Retry-After where another attempt may succeed.
WebResponse error_response(const WebError& why);

}  // namespace hark::serve
