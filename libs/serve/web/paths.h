// The target of a request, and its host.
#pragma once

#include <string>
#include <string_view>

namespace hark::serve {

// The path without its query, its %XX decoded; what is not valid stays as it is.
std::string path_of(std::string_view target);

// Whether a header Host, with or without a port, is an address or localhost: another name may be
// that of a page's server, which a browser was told to find on this machine.
bool is_local_host(std::string_view host);

}  // namespace hark::serve
