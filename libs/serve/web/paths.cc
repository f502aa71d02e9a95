#include "serve/web/paths.h"

#include <algorithm>
#include <charconv>

#include "core/ascii.h"

namespace hark::serve {

std::string percent_decoded(std::string_view text) {
    std::string decoded;
    for (size_t i = 0; i < text.size(); ++i) {
        unsigned value = 0;
        const char* const digits = text.data() + i + 1;
        const bool is_escape = text[i] == '%' && i + 2 < text.size() &&
                               std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
        decoded += is_escape ? static_cast<char>(value) : text[i];
        if (is_escape) i += 2;
    }
    return decoded;
}

std::string path_of(std::string_view target) {
    return percent_decoded(target.substr(0, target.find('?')));
}

std::vector<std::pair<std::string, std::string>> query_of(std::string_view target) {
    std::vector<std::pair<std::string, std::string>> fields;
    size_t at = target.find('?');
    while (at < target.size()) {
        const size_t end = std::min(target.find('&', at + 1), target.size());
        std::string field(target.substr(at + 1, end - at - 1));
        std::replace(field.begin(), field.end(), '+', ' ');
        const size_t equals = std::min(field.find('='), field.size());
        if (!field.empty())
            fields.emplace_back(percent_decoded(field.substr(0, equals)),
                                percent_decoded(field.substr(std::min(equals + 1, field.size()))));
        at = end;
    }
    return fields;
}

bool is_own_origin(std::string_view origin, std::string_view host) {
    const size_t scheme = origin.find("://");
    if (scheme == origin.npos || host.empty()) return false;
    return equal_ignoring_case(origin.substr(scheme + 3), host);
}

bool is_local_host(std::string_view host) {
    if (host.empty() || host.starts_with('[')) return true;  // none, or an IPv6 address
    const std::string_view name = host.substr(0, host.rfind(':'));
    return name.find_first_not_of("0123456789.") == name.npos || name == "localhost" ||
           name.ends_with(".localhost");
}

}  // namespace hark::serve
