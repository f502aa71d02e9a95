#include "hub/server.h"

#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "core/files/files.h"
#include "hub/http_address.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTokenFile = 4096;

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
}

std::string without_slashes(std::string url) {
    while (url.ends_with('/')) url.pop_back();
    return url;
}

std::string trimmed(const std::string& text) {
    constexpr const char* kSpace = " \t\r\n";
    const size_t begin = text.find_first_not_of(kSpace);
    if (begin == text.npos) return "";
    return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

// The file in which huggingface_hub's login keeps the token; empty if there is no place for it.
fs::path token_file() {
    if (const std::string file = variable("HF_TOKEN_PATH"); !file.empty()) return file;
    if (const std::string home = variable("HF_HOME"); !home.empty())
        return fs::path(home) / "token";
    if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty())
        return fs::path(cache) / "huggingface/token";
    const std::string home = variable("HOME");
    return home.empty() ? fs::path() : fs::path(home) / ".cache/huggingface/token";
}

std::string checked_token(const std::string& token, const std::string& where) {
    require(token.empty() || is_token(token), where,
            ": expected a token of at most 1000 visible ASCII characters, found another text");
    return token;
}

std::string token() {
    if (const std::string given = trimmed(variable("HF_TOKEN")); !given.empty())
        return checked_token(given, "HF_TOKEN");
    const fs::path file = token_file();
    std::error_code failed;
    if (file.empty() || !fs::exists(file, failed)) return "";
    return checked_token(trimmed(read_file(file, kMaxTokenFile)), file.string());
}

std::string endpoint() {
    const std::string given = without_slashes(variable("HF_ENDPOINT"));
    if (given.empty()) return kHuggingFace;
    require(is_private(given),
            "HF_ENDPOINT: expected an https address (http: of this machine alone) without a "
            "user's name, found another text");
    return given;
}

}  // namespace

void Server::authorize(Downloader& downloader) const {
    if (!token.empty()) downloader.authorize(url, token);
}

Server hub_server(const std::string& from) {
    if (from.empty()) return {endpoint(), token(), true};
    const std::string url = without_slashes(from);
    const std::optional<Address> address = address_of(url);
    require_usage(address.has_value(), "--from: not a URL (got '", from,
                  "', expected http://... or https://... without a user's name)");
    const bool own = is_private(url) && address == address_of(endpoint());
    return {url, own ? token() : "", own};
}

}  // namespace hark::models
