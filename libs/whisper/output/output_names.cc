#include "whisper/output/output_names.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <sstream>

#include "core/error.h"
#include "text/utf8.h"

namespace hark::whisper {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostNameBytes = 255;  // of a file's name: NAME_MAX of Linux and macOS

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

std::string without_slash(std::string text) {
    std::replace(text.begin(), text.end(), '/', '_');
    return text;
}

// The template with each {field} replaced by its value.
std::string expanded(const std::string& name_template,
                     const std::function<std::string(const std::string& field)>& value) {
    std::string text;
    for (size_t at = 0; at < name_template.size();) {
        if (name_template[at] != '{') {
            text += name_template[at++];
            continue;
        }
        const size_t end = name_template.find('}', at);
        require_usage(end != std::string::npos, "--output-name: '", name_template,
                      "' has a '{' without '}'");
        text += value(name_template.substr(at + 1, end - at - 1));
        at = end + 1;
    }
    return text;
}

std::vector<std::string> components(const std::string& path) {
    std::vector<std::string> parts;
    std::istringstream in(path);
    for (std::string part; std::getline(in, part, '/');)
        if (!part.empty() && part != ".") parts.push_back(part);
    return parts;
}

bool leaves_folder(const std::string& path) {
    const std::vector<std::string> parts = components(path);
    return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

std::string value_of(const std::string& field, const RecordingInfo& info, int64_t number) {
    const fs::path source(info.source);
    const auto file_name = [](const fs::path& path) {
        const std::string name = path.string();
        return name.empty() || name == "." || name == ".." ? "recording" : name;
    };
    if (field == "name") return file_name(source.filename());
    if (field == "stem") return file_name(source.stem());
    if (field == "folder") return source.parent_path().string();
    if (field == "channel") return without_slash(info.channel);
    if (field == "n") return std::to_string(number);
    throw UsageError(concat("--output-name: unknown field {", field,
                            "}, expected {name}, {stem}, {folder}, {channel} or {n}"));
}

}  // namespace

void check_name_template(const std::string& name_template) {
    const std::string path = expanded(name_template, [](const std::string& field) {
        return value_of(field, {"folder/name.wav"}, 1);
    });
    require_usage(!leaves_folder(path), "--output-name: '", name_template,
                  "' has '..', which leaves the folder of --output-dir");
    require_usage(!path.ends_with('/') && !components(path).empty(), "--output-name: '",
                  name_template, "' names no file, only a folder");
}

OutputNames::OutputNames(std::string name_template, std::vector<std::string> endings)
    : template_(std::move(name_template)), endings_(std::move(endings)) {
    size_t longest = 0;
    for (const std::string& ending : endings_) longest = std::max(longest, ending.size());
    most_bytes_ = kMostNameBytes - longest;
}

OutputNames::Name OutputNames::add(const RecordingInfo& info) {
    ++count_;
    std::string path = expanded(
        template_, [&](const std::string& field) { return value_of(field, info, count_); });
    if (info.channel != "0" && template_.find("{channel}") == std::string::npos)
        path += "." + without_slash(info.channel);
    require(!leaves_folder(path), "--output-name makes '", path,
            "', which leaves the folder of --output-dir; use another template");
    std::replace(path.begin(), path.end(), '\0', '_');
    std::vector<std::string> parts = components(replace_invalid(path));
    if (parts.empty()) parts = {"recording"};
    std::string folder;
    for (size_t i = 0; i + 1 < parts.size(); ++i)
        folder += shortened(parts[i], kMostNameBytes) + "/";

    Name name;
    for (int n = 1;; ++n) {
        const std::string suffix = n == 1 ? "" : concat("-", n);
        name.path = folder + shortened(parts.back(), most_bytes_ - suffix.size()) + suffix;
        const std::string* const other = owner(name.path);
        if (!other) break;
        if (n == 1) name.taken_by = *other;
    }
    for (const std::string& ending : endings_) sources_[name.path + ending] = info.source;
    return name;
}

const std::string* OutputNames::owner(const std::string& path) const {
    for (const std::string& ending : endings_) {
        const auto found = sources_.find(path + ending);
        if (found != sources_.end()) return &found->second;
    }
    return nullptr;
}

}  // namespace hark::whisper
