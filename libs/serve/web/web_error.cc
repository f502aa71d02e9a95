#include "serve/web/web_error.h"

#include <new>

namespace hark::serve {

WebError web_error_of(const std::exception& why, int of_error) {
    if (const auto* const known = dynamic_cast<const WebError*>(&why)) return *known;
    if (dynamic_cast<const std::bad_alloc*>(&why))
        return WebError(503, "out of memory", "", "insufficient_memory");
    if (dynamic_cast<const OutOfMemory*>(&why))
        return WebError(503, why.what(), "", "insufficient_memory");
    return WebError(dynamic_cast<const Error*>(&why) ? of_error : 500, why.what());
}

}  // namespace hark::serve
