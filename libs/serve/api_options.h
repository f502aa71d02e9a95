// What the endpoints demand of all requests.
#pragma once

#include <cstddef>

#include "serve/web/api_keys.h"

namespace hark::serve {

struct ApiOptions {
    ApiKeys keys;
    bool checks_host = false;  // refuses requests to a name that is not this machine's
    size_t most_json_bytes = size_t{16} << 20, most_form_bytes = size_t{512} << 20;
};

}  // namespace hark::serve
