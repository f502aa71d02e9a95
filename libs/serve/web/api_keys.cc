#include "serve/web/api_keys.h"

#include "core/error.h"
#include "core/files/files.h"
#include "serve/web/paths.h"

namespace hark::serve {
namespace {

// The loop's length depends on what was sent, not on the key.
bool is_equal(std::string_view sent, std::string_view key) {
    unsigned difference = sent.size() == key.size() ? 0 : 1;
    for (size_t i = 0; i < sent.size(); ++i)
        difference |=
            static_cast<unsigned char>(sent[i]) ^ static_cast<unsigned char>(key[i % key.size()]);
    return difference == 0;
}

}  // namespace

ApiKeys ApiKeys::read(const std::filesystem::path& file) {
    const std::string text = read_file_or_pipe(file, size_t{1} << 20);
    ApiKeys keys;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        std::string key = text.substr(at, end - at);
        while (!key.empty() && (key.back() == '\r' || key.back() == ' ')) key.pop_back();
        if (!key.empty() && key.front() != '#') keys.keys_.push_back(std::move(key));
        at = end + 1;
    }
    require(!keys.keys_.empty(), file.string(), ": no key; write one per line");
    return keys;
}

bool ApiKeys::accept(std::string_view authorization) const {
    if (keys_.empty()) return true;
    constexpr std::string_view kScheme = "Bearer ";
    if (!authorization.starts_with(kScheme)) return false;
    return has(authorization.substr(kScheme.size()));
}

bool ApiKeys::accept_any(const std::vector<std::string>& protocols) const {
    constexpr std::string_view kPrefix = "hark-key.";
    bool found = false;
    for (const std::string& protocol : protocols)
        found |= protocol.starts_with(kPrefix) &&
                 has(percent_decoded(std::string_view(protocol).substr(kPrefix.size())));
    return found;
}

bool ApiKeys::has(std::string_view sent) const {
    bool found = false;
    for (const std::string& key : keys_) found |= is_equal(sent, key);
    return found;
}

}  // namespace hark::serve
