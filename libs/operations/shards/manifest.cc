#include "operations/shards/manifest.h"

#include <cmath>
#include <unordered_set>

#include "core/error.h"
#include "core/shortest.h"
#include "text/lines.h"
#include "text/utf8.h"

namespace hark::shards {

namespace fs = std::filesystem;

bool is_remote(std::string_view path) {
    const size_t colon = path.find(':');
    return colon != path.npos && colon > 0 && colon < path.find('/');
}

nlohmann::ordered_json parse_object(std::string_view line, const std::string& where) {
    require(is_valid_utf8(line), where, ": expected UTF-8");
    return parse_ordered_json_object(line, where);
}

std::string text_at(const nlohmann::ordered_json& fields, const char* key,
                    const std::string& where) {
    const auto found = fields.find(key);
    if (found == fields.end() || found->is_null()) return "";
    if (found->is_number()) return json_text(*found);
    require(found->is_string(), where, ": ", key, ": expected a string, found ",
            found->type_name());
    return found->get<std::string>();
}

std::optional<double> seconds_at(const nlohmann::ordered_json& fields, const char* key,
                                 const std::string& where) {
    const auto found = fields.find(key);
    if (found == fields.end() || found->is_null()) return std::nullopt;
    require(found->is_number(), where, ": ", key, ": expected seconds, found ", found->type_name());
    const double seconds = found->get<double>();
    require(std::isfinite(seconds) && seconds >= 0, where, ": ", key,
            ": expected 0 seconds or more, found ", seconds);
    return seconds;
}

int64_t count_at(const nlohmann::ordered_json& fields, const char* key, const std::string& where) {
    const auto found = fields.find(key);
    require(found != fields.end() && found->is_number_integer() && found->get<int64_t>() >= 0,
            where, ": expected a number named ", key);
    return found->get<int64_t>();
}

ManifestEntry entry_of(nlohmann::ordered_json fields, const fs::path& folder,
                       const std::string& where) {
    ManifestEntry entry;
    const std::string given = text_at(fields, "audio_filepath", where);
    require(!given.empty(), where, ": expected a path or URL named audio_filepath, found none");
    entry.offset = seconds_at(fields, "offset", where);
    entry.duration = seconds_at(fields, "duration", where);
    require(!entry.offset || (entry.duration && *entry.duration > 0), where,
            ": a part with an offset needs a duration of more than 0 s");
    if (const std::string member = text_at(fields, "member", where); !member.empty()) {
        require(!is_remote(given), where, ": a member of a tar that is not a file here");
        require(member.find_first_of(std::string("\t\r\n\0", 4)) == member.npos &&
                    is_valid_utf8(member),
                where, ": expected a member's name in UTF-8, without a tab, line end or NUL");
        count_at(fields, "member_offset", where);
        entry.member_bytes = count_at(fields, "member_bytes", where);
    }
    entry.id = text_at(fields, "id", where);
    if (entry.id.empty())
        entry.id = entry.offset ? concat(given, "@", shortest(*entry.offset)) : given;
    entry.audio_filepath =
        is_remote(given) ? given : fs::absolute(folder / given).lexically_normal().string();
    for (const std::string* text : {&entry.id, &entry.audio_filepath})
        require(text->find_first_of(std::string("\t\r\n\0", 4)) == text->npos, where,
                ": expected no tab, line end or NUL in an id or a path");
    for (const std::string* text : {&entry.id, &entry.audio_filepath})
        require(is_valid_utf8(*text), where, ": expected an id and a path in UTF-8; rename it");
    nlohmann::ordered_json all = {{"audio_filepath", entry.audio_filepath}, {"id", entry.id}};
    for (const auto& [key, value] : fields.items())
        if (!all.contains(key)) all[key] = value;
    entry.line = json_text(all);
    return entry;
}

std::vector<ManifestEntry> entries_of_lines(
    std::string_view lines, const fs::path& folder, const std::string& where,
    const std::function<nlohmann::ordered_json(nlohmann::ordered_json, const std::string&)>&
        to_fields) {
    std::vector<ManifestEntry> entries;
    for_each_line(lines, [&](std::string_view line, size_t number) {
        if (line.find_first_not_of(" \t") == line.npos) return;
        const std::string place = concat(where, ": line ", number);
        entries.push_back(entry_of(to_fields(parse_object(line, place), place), folder, place));
    });
    return entries;
}

std::vector<ManifestEntry> parse_manifest(std::string_view lines, const fs::path& folder,
                                          const std::string& where) {
    std::vector<ManifestEntry> entries =
        entries_of_lines(lines, folder, where,
                         [](nlohmann::ordered_json object, const std::string&) { return object; });
    require_unique_ids(entries);
    return entries;
}

void require_unique_ids(const std::vector<ManifestEntry>& entries) {
    std::unordered_set<std::string_view> ids;
    for (const ManifestEntry& entry : entries)
        require(ids.insert(entry.id).second, entry.id, ": two recordings have this id (",
                entry.audio_filepath, "); give each line an id of its own");
}

}  // namespace hark::shards
