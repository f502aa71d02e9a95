#include "hub/http_headers.h"

#include <charconv>

#include "core/ascii.h"
#include "core/error.h"
#include "hub/hashes.h"

namespace hark::models {
namespace {

std::optional<uint64_t> number(std::string_view text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// An ETag's text: W/"abc" -> abc.
std::string unquoted(std::string tag) {
    if (tag.starts_with("W/")) tag.erase(0, 2);
    if (tag.size() >= 2 && tag.front() == '"' && tag.back() == '"')
        tag = tag.substr(1, tag.size() - 2);
    return tag;
}

}  // namespace

void HttpHeaders::add(std::string_view line) {
    if (line.starts_with("HTTP/")) values_.clear();
    const size_t colon = line.find(':');
    if (colon == line.npos) return;
    const size_t begin = line.find_first_not_of(" \t\r\n", colon + 1);
    const size_t end = line.find_last_not_of(" \t\r\n");
    values_[ascii_lower(line.substr(0, colon))] =
        begin == line.npos ? "" : line.substr(begin, end - begin + 1);
}

std::string HttpHeaders::get(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? "" : found->second;
}

RemoteFile file_of(const HttpHeaders& headers, const std::string& url) {
    const bool linked = headers.tell_of_linked_file();
    const std::string size = headers.get(linked ? "x-linked-size" : "content-length");
    const std::optional<uint64_t> bytes = number(size);
    require(bytes.has_value(), url, ": the server stated no size (got ",
            linked ? "X-Linked-Size" : "Content-Length", " '", size, "')");
    const std::string tag = headers.get(linked ? "x-linked-etag" : "etag");
    const std::string modified = headers.get("last-modified");
    RemoteFile file{.found = true, .bytes = *bytes, .version = unquoted(tag)};
    if (file.version.empty()) file.version = modified;
    // Two files may be of one weak tag.
    file.if_range = tag.starts_with('"') ? tag : modified;
    if (linked || !headers.get("x-repo-commit").empty()) {
        file.sha256 = hash_of(file.version, kSha256Digits);
        file.git_blob = hash_of(file.version, kGitDigits);
    }
    return file;
}

std::optional<uint64_t> begin_of_part(std::string_view content_range) {
    if (!content_range.starts_with("bytes ")) return std::nullopt;
    content_range.remove_prefix(6);
    return number(content_range.substr(0, content_range.find('-')));
}

std::optional<int64_t> seconds_of(std::string_view retry_after) {
    const std::optional<uint64_t> seconds = number(retry_after);
    if (!seconds || *seconds > INT64_MAX) return std::nullopt;
    return static_cast<int64_t>(*seconds);
}

}  // namespace hark::models
