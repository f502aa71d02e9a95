#include "serve/web/web_error.h"

namespace hark::serve {

WebError web_error_of(const std::exception& why, int of_error) {
    if (const auto* const known = dynamic_cast<const WebError*>(&why)) return *known;
    if (is_out_of_memory(why)) return WebError(503, failure_text(why), "", "insufficient_memory");
    return WebError(dynamic_cast<const Error*>(&why) ? of_error : 500, why.what());
}

}  // namespace hark::serve
