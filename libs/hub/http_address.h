// Addresses of servers, as libcurl reads them, and what is sent to them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hark::models {

// Where a request goes: the port is the scheme's own if the URL has none; in lower case.
struct Address {
    std::string scheme, host, port;
    bool operator==(const Address&) const = default;
};

// Returns nullopt for what libcurl does not take for a URL, and for a URL with a user's name.
std::optional<Address> address_of(const std::string& url);

// Whether only the server can read what is sent to this address: https, or http on this machine
// itself (localhost, 127.0.0.0/8, ::1), as libcurl reads the address. False for what address_of()
// does not take.
bool is_private(const std::string& url);

// Whether a text can be sent as a token: 1 to 1,000 visible ASCII characters.
bool is_token(std::string_view text);

// A path with all bytes but letters, digits and -._~ as %XX; `/` stays if `keep_slashes`.
std::string percent_encoded(std::string_view path, bool keep_slashes);

}  // namespace hark::models
