// The target of a request.
#pragma once

#include <string>
#include <string_view>

namespace hark::serve {

// The path without its query, its %XX decoded; what is not valid stays as it is.
std::string path_of(std::string_view target);

}  // namespace hark::serve
