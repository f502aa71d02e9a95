// Recordings to transcribe, as lines of NeMo's manifests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json/json.h"

namespace hark::shards {

// One line: a recording, or a part of one.
struct ManifestEntry {
    std::string id;              // unique in a plan
    std::string audio_filepath;  // an absolute path, URL://..., or REMOTE:PATH of rclone
    std::optional<double> offset, duration;  // seconds; with an offset it is a part
    std::optional<int64_t> member_bytes;     // of a recording within a tar, which is the path
    std::string line;  // the whole object without a line end: the keys above, and all others
};

// The entry of one object. Without an `id` the path is the id, and of a part PATH@OFFSET. A
// relative path is one in `folder`. A `member` of a tar has member_offset and member_bytes. Throws
// Error that begins with `where` for what no manifest has.
ManifestEntry entry_of(nlohmann::ordered_json fields, const std::filesystem::path& folder,
                       const std::string& where);

// The entries of such lines; blank lines are skipped. Throws Error naming the line, also for an id
// that comes twice. `where` names the text.
std::vector<ManifestEntry> parse_manifest(std::string_view lines,
                                          const std::filesystem::path& folder,
                                          const std::string& where);

// An entry of each line that is not blank: to_fields(object, where) makes a manifest's fields of
// the line's object. Throws Error that begins with `where` and the line's number.
std::vector<ManifestEntry> entries_of_lines(
    std::string_view lines, const std::filesystem::path& folder, const std::string& where,
    const std::function<nlohmann::ordered_json(nlohmann::ordered_json object,
                                               const std::string& where)>& to_fields);

// Throws Error naming the id that two entries have.
void require_unique_ids(const std::vector<ManifestEntry>& entries);

// Whether the path is not a file's: a URL, or a colon comes before the first slash (rclone's rule).
bool is_remote(std::string_view path);

// The object of a line of JSON. Throws Error that begins with `where` if it is none.
nlohmann::ordered_json parse_object(std::string_view line, const std::string& where);

// fields[key] as a string, a number in decimal digits; empty if there is none. Throws Error.
std::string text_at(const nlohmann::ordered_json& fields, const char* key,
                    const std::string& where);
// fields[key], at least 0; none if it is null or missing. Throws Error.
std::optional<double> seconds_at(const nlohmann::ordered_json& fields, const char* key,
                                 const std::string& where);

// fields[key], a whole number of at least 0. Throws Error.
int64_t count_at(const nlohmann::ordered_json& fields, const char* key, const std::string& where);

}  // namespace hark::shards
