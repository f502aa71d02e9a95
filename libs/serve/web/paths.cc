#include "serve/web/paths.h"

#include <charconv>

namespace hark::serve {

std::string path_of(std::string_view target) {
    target = target.substr(0, target.find('?'));
    std::string path;
    for (size_t i = 0; i < target.size(); ++i) {
        unsigned value = 0;
        const char* const digits = target.data() + i + 1;
        const bool is_escape = target[i] == '%' && i + 2 < target.size() &&
                               std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
        path += is_escape ? static_cast<char>(value) : target[i];
        if (is_escape) i += 2;
    }
    return path;
}

bool is_local_host(std::string_view host) {
    if (host.empty() || host.starts_with('[')) return true;  // none, or an IPv6 address
    const std::string_view name = host.substr(0, host.rfind(':'));
    return name.find_first_not_of("0123456789.") == name.npos || name == "localhost" ||
           name.ends_with(".localhost");
}

}  // namespace hark::serve
