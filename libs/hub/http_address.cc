#include "hub/http_address.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "core/ascii.h"
#include "core/machine/loopback.h"

namespace hark::models {
namespace {

constexpr size_t kMaxToken = 1000;

// A part of a URL; empty if it has none.
std::string part_of(CURLU* url, CURLUPart part) {
    char* text = nullptr;
    if (curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return "";
    std::string copy = text;
    curl_free(text);
    return ascii_lower(copy);
}

}  // namespace

std::optional<Address> address_of(const std::string& url) {
    const std::unique_ptr<CURLU, void (*)(CURLU*)> parts(curl_url(), curl_url_cleanup);
    if (!parts || curl_url_set(parts.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
        return std::nullopt;
    Address address = {part_of(parts.get(), CURLUPART_SCHEME), part_of(parts.get(), CURLUPART_HOST),
                       part_of(parts.get(), CURLUPART_PORT)};
    const bool is_web = address.scheme == "http" || address.scheme == "https";
    const bool has_user = !part_of(parts.get(), CURLUPART_USER).empty() ||
                          !part_of(parts.get(), CURLUPART_PASSWORD).empty();
    if (!is_web || has_user || address.host.empty()) return std::nullopt;
    return address;
}

bool is_private(const std::string& url) {
    const std::optional<Address> address = address_of(url);
    return address && (address->scheme == "https" || is_loopback(address->host));
}

bool is_token(std::string_view text) {
    return !text.empty() && text.size() <= kMaxToken &&
           std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

std::string percent_encoded(std::string_view path, bool keep_slashes) {
    std::string text;
    for (const char c : path) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = byte < 0x80 && (std::isalnum(byte) || c == '-' || c == '.' || c == '_' ||
                                           c == '~' || (c == '/' && keep_slashes));
        if (plain) {
            text += c;
            continue;
        }
        text += '%';
        text += "0123456789ABCDEF"[byte >> 4];
        text += "0123456789ABCDEF"[byte & 15];
    }
    return text;
}

}  // namespace hark::models
