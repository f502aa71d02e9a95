#include "operations/shards/collect.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>

#include "core/error.h"
#include "core/files/files.h"
#include "core/profile/profile.h"
#include "hub/digest.h"
#include "text/lines.h"

namespace hark::shards {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTranscriptBytes = size_t{1} << 30;

// Calls f(number of the recording, path, second field) for the lines of a table, if the file is
// there. A line that a lost machine has not finished is left out.
template <class F>
void for_each_row(const fs::path& table, F&& f) {
    if (!fs::exists(table)) return;
    for_each_line(read_file(table), [&](std::string_view line, size_t) {
        const size_t tab = line.find('\t');
        if (tab == line.npos) return;
        const std::string stem = fs::path(line.substr(0, tab)).stem().string();
        size_t number = 0;
        if (std::from_chars(stem.data(), stem.data() + stem.size(), number).ec == std::errc())
            f(number, std::string(line.substr(0, tab)), std::string(line.substr(tab + 1)));
    });
}

// What the paths of `work` say, as the entry's.
std::string renamed(std::string text, const std::string& path, const std::string& name) {
    for (size_t at = text.find(path); at != text.npos; at = text.find(path, at + name.size()))
        text.replace(at, path.size(), name);
    return text;
}

double rounded_hours(double seconds) { return std::round(seconds / 3600 * 1e6) / 1e6; }

}  // namespace

void collect_shard(const fs::path& plan_folder, const PlannedShard& shard, const fs::path& work,
                   const fs::path& results, double wall_seconds) {
    const std::vector<ManifestEntry> entries = read_shard(plan_folder, shard);
    std::map<size_t, double> seconds;
    std::map<size_t, std::string> errors;
    for_each_row(work / "out/.hark/seconds", [&](size_t number, const std::string&, auto text) {
        double length = 0;
        if (std::from_chars(text.data(), text.data() + text.size(), length).ec == std::errc())
            seconds[number] = length;
    });
    for (const char* table : {"out/failed.tsv", "unfetched.tsv"})
        for_each_row(work / table, [&](size_t number, const std::string& path, auto error) {
            if (number >= 1 && number <= entries.size())
                errors[number] = renamed(error, path, entries[number - 1].audio_filepath);
        });
    int64_t transcribed = 0, failed = 0, missing = 0;
    double length = 0, failed_length = 0;
    std::string first;
    const fs::path path = results / (shard.name + ".jsonl");
    AtomicFile out(path);
    for (size_t number = 1; number <= entries.size(); ++number) {
        const ManifestEntry& entry = entries[number - 1];
        char name[32];
        std::snprintf(name, sizeof name, "%06zu.jsonl", number);
        const fs::path transcript = work / "out" / name;
        nlohmann::ordered_json line = {{"id", entry.id}, {"source", entry.audio_filepath}};
        if (const auto error = errors.find(number); error != errors.end()) {
            ++failed;
            failed_length += entry.duration.value_or(0);
            line["error"] = error->second;
            out.write(json_text(line) + "\n");
        } else if (fs::exists(transcript)) {
            ++transcribed;
            length += seconds[number];
            const ProfileSpan span("read");
            for_each_line(read_file(transcript, kMaxTranscriptBytes), [&](auto text, size_t) {
                nlohmann::ordered_json segment = line;
                segment.update(parse_object(text, transcript.string()));
                segment["source"] = entry.audio_filepath;
                out.write(json_text(segment) + "\n");
            });
        } else {
            ++missing;
            if (first.empty()) first = entry.id;
        }
    }
    require(missing == 0, "shard ", shard.name, ": ", counted(missing, "recording"),
            " with neither a transcript nor an error, the first is ", first);
    out.commit();
    const nlohmann::ordered_json done = {
        {"shard", shard.name},
        {"recordings", transcribed + failed},
        {"transcribed", transcribed},
        {"failed", failed},
        {"hours", rounded_hours(length)},
        {"failed_hours", rounded_hours(failed_length)},
        {"wall_seconds", wall_seconds},
        {"shard_sha256", shard.sha256},
        {"result_sha256", models::sha256_of(path)},
        {"job", parse_object(read_file(work / "job.json"), (work / "job.json").string())}};
    write_file(results / (shard.name + ".done"), json_text(done) + "\n");
}

}  // namespace hark::shards
