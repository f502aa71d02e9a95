#include "whisper/output_names.h"

#include <filesystem>

#include "core/error.h"
#include "text/utf8.h"

namespace hark::whisper {
namespace {

constexpr size_t kMostBytes = 255;  // of a file's name: NAME_MAX of Linux and macOS

// The first `bytes` of the text, fewer if a character ends after them.
std::string shortened(const std::string& text, size_t bytes) {
    size_t end = 0;
    for (size_t at = 0; at < text.size();) {
        next_code_point(text, at);
        if (at > bytes) break;
        end = at;
    }
    return text.substr(0, end);
}

}  // namespace

OutputNames::OutputNames(size_t longest_ending) : most_(kMostBytes - longest_ending) {}

std::string OutputNames::add(const RecordingInfo& info) {
    std::string name = std::filesystem::path(info.source).stem().string();
    if (name.empty() || name == "." || name == "..") name = "recording";
    if (info.channel != "0") name += "." + info.channel;
    for (char& byte : name)
        if (byte == '\0' || byte == '/') byte = '_';
    name = replace_invalid(name);
    for (int n = 1;; ++n) {
        const std::string suffix = n == 1 ? "" : concat("-", n);
        std::string unique = shortened(name, most_ - suffix.size()) + suffix;
        if (taken_.insert(unique).second) return unique;
    }
}

}  // namespace hark::whisper
