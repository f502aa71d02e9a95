// The target of a request, and its host.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hark::serve {

// The text with its %XX decoded; what is not valid stays as it is.
std::string percent_decoded(std::string_view text);

// The path without its query, decoded.
std::string path_of(std::string_view target);

// The fields of its query, decoded; a + is a space.
std::vector<std::pair<std::string, std::string>> query_of(std::string_view target);

// Whether a header Origin names the server that a header Host names: the page is the server's own.
bool is_own_origin(std::string_view origin, std::string_view host);

// Whether a header Host, with or without a port, is an address or localhost: another name may be
// that of a page's server, which a browser was told to find on this machine.
bool is_local_host(std::string_view host);

}  // namespace hark::serve
