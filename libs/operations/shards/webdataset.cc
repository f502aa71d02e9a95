// WebDataset's tars: members whose names are equal up to the first dot of the base name are one
// sample. Source: https://github.com/webdataset/webdataset, README, "The WebDataset Format".
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "operations/shards/inputs.h"
#include "operations/shards/tar.h"

namespace hark::shards {
namespace {

namespace fs = std::filesystem;
using Sample = nlohmann::ordered_json;

constexpr size_t kMaxTextBytes = size_t{1} << 20;

// The key of the sample, and the rest: "a/b.c", "json" of "a/b.c.json" is "a/b" and ".c.json".
std::pair<std::string, std::string> parts_of(const std::string& name) {
    const size_t slash = name.rfind('/'), base = slash == name.npos ? 0 : slash + 1;
    const size_t dot = std::min(name.find('.', base), name.size());
    return {name.substr(0, dot), name.substr(dot)};
}

// What a sample's .json says of the recording.
void add_fields(Sample& sample, const Sample& said) {
    for (const auto& [key, ours] : {std::pair{"text", "text"},
                                    {"duration", "duration"},
                                    {"speaker", "speaker"},
                                    {"language", "lang"},
                                    {"lang", "lang"}})
        if (const auto found = said.find(key); found != said.end() && !found->is_structured())
            sample[ours] = *found;
}

}  // namespace

std::vector<ManifestEntry> read_webdataset(const fs::path& archive) {
    std::vector<ManifestEntry> entries;
    const std::string where = archive.string();
    std::string key;
    Sample sample = Sample::object();
    bool is_open = false;  // a sample has begun
    const auto finish = [&] {
        if (!std::exchange(is_open, false)) return;
        const std::string place = concat(where, ": ", key);
        require(sample.contains("member"), place, ": this sample has no recording");
        sample["audio_filepath"] = fs::absolute(archive).string();
        sample["id"] = key;
        entries.push_back(entry_of(std::exchange(sample, Sample::object()), {}, place));
    };
    for_each_member(archive, [&](const TarMember& member) {
        const auto [name, ending] = parts_of(member.name);
        if (name != key) finish();
        key = name;
        const std::string place = concat(where, ": ", member.name);
        if (is_recording(member.name)) {
            require(!sample.contains("member"), place, ": a second recording of its sample");
            sample["member"] = member.name;
            sample["member_offset"] = member.offset;
            sample["member_bytes"] = member.bytes;
        } else if (ending == ".txt") {
            std::string text = content_of(archive, member, kMaxTextBytes);
            while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
            sample["text"] = text;
        } else if (ending == ".json") {
            add_fields(sample, parse_object(content_of(archive, member, kMaxTextBytes), place));
        }
        is_open = true;
    });
    finish();
    require(!entries.empty(), where, ": found no samples");
    return entries;
}

}  // namespace hark::shards
