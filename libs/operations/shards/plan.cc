#include "operations/shards/plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "core/files/files.h"
#include "core/profile/profile.h"
#include "hub/digest.h"
#include "text/lines.h"

namespace hark::shards {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHeading = "name\trecordings\thours\tbytes\tsha256\n";
constexpr size_t kMaxShards = 99999;  // names have five digits
constexpr double kDefaultHours = 20, kDefaultBytes = 1e9, kDefaultRecordings = 500;

double weight_of(const ManifestEntry& entry, const std::optional<int64_t>& bytes, SizeUnit unit) {
    switch (unit) {
        case SizeUnit::hours:
            return *entry.duration / 3600;
        case SizeUnit::bytes:
            return static_cast<double>(*bytes);
        case SizeUnit::recordings:
            return 1;
    }
    return 1;
}

template <class Number>
Number number_in(const std::string& field, const std::string& where) {
    Number value{};
    const char* const end = field.data() + field.size();
    const auto read = std::from_chars(field.data(), end, value);
    require(read.ec == std::errc() && read.ptr == end && value >= 0, where,
            ": expected a number, found '", field, "'");
    return value;
}

PlannedShard row_of(std::string_view line, const std::string& where) {
    std::vector<std::string> fields(1);
    for (const char c : line)
        if (c == '\t')
            fields.emplace_back();
        else
            fields.back() += c;
    require(fields.size() == 5, where, ": expected 5 fields, found ", fields.size());
    PlannedShard shard;
    shard.name = fields[0];
    require(!shard.name.empty() && shard.name.find_first_of("/.") == std::string::npos, where,
            ": expected the name of a shard, found '", shard.name, "'");
    shard.recordings = number_in<int64_t>(fields[1], where);
    if (fields[2] != "-") shard.hours = number_in<double>(fields[2], where);
    if (fields[3] != "-") shard.bytes = number_in<int64_t>(fields[3], where);
    shard.sha256 = fields[4];
    return shard;
}

std::string row_text(const PlannedShard& shard) {
    return concat(shard.name, "\t", shard.recordings, "\t", hours_text(shard.hours), "\t",
                  shard.bytes ? concat(*shard.bytes) : "-", "\t", shard.sha256, "\n");
}

// The rows' sums of the entries [begin, end).
PlannedShard sums(const std::vector<ManifestEntry>& entries, const SizesKnown& known, size_t begin,
                  size_t end) {
    PlannedShard shard;
    shard.recordings = static_cast<int64_t>(end - begin);
    shard.hours = 0;
    shard.bytes = 0;
    for (size_t i = begin; i < end; ++i) {
        if (!entries[i].duration) shard.hours.reset();
        if (!known.bytes[i]) shard.bytes.reset();
        if (shard.hours) *shard.hours += *entries[i].duration / 3600;
        if (shard.bytes) *shard.bytes += *known.bytes[i];
    }
    return shard;
}

void require_hash(const fs::path& path, const std::string& sha256, const PlannedShard& shard) {
    require(sha256 == shard.sha256, path.string(),
            ": was changed after the plan (its SHA-256 is not that of shards.tsv); restore it, or "
            "plan again");
}

}  // namespace

ShardSize parse_size(const std::string& text) {
    ShardSize size;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, size.amount);
    const std::string unit(read.ptr, end);
    const bool known = unit.empty() || unit == "h" || unit == "MB" || unit == "GB";
    require_usage(
        read.ec == std::errc() && known && std::isfinite(size.amount) && size.amount > 0,
        "--shard-size: expected hours, bytes or recordings, such as 20h, 500MB or 1000, got '",
        text, "'");
    if (unit.empty()) size.unit = SizeUnit::recordings;
    if (unit == "MB" || unit == "GB") {
        size.unit = SizeUnit::bytes;
        size.amount *= unit == "MB" ? 1e6 : 1e9;
    }
    return size;
}

SizesKnown measure(const std::vector<ManifestEntry>& entries) {
    const ProfileSpan span("read");
    SizesKnown known;
    for (const ManifestEntry& entry : entries) {
        std::optional<int64_t> bytes;
        std::error_code failed;
        if (entry.member_bytes && !entry.offset) {
            bytes = entry.member_bytes;
        } else if (!is_remote(entry.audio_filepath) && !entry.offset) {
            const uintmax_t found = fs::file_size(entry.audio_filepath, failed);
            if (!failed) bytes = static_cast<int64_t>(found);
        }
        known.without_duration += !entry.duration;
        known.without_bytes += !bytes;
        known.bytes.push_back(bytes);
    }
    return known;
}

ShardSize default_size(const SizesKnown& known) {
    if (known.without_duration == 0) return {SizeUnit::hours, kDefaultHours};
    if (known.without_bytes == 0) return {SizeUnit::bytes, kDefaultBytes};
    return {SizeUnit::recordings, kDefaultRecordings};
}

std::vector<size_t> cut(const std::vector<ManifestEntry>& entries, const SizesKnown& known,
                        const ShardSize& size) {
    require(size.unit != SizeUnit::hours || known.without_duration == 0,
            "--shard-size: ", counted(known.without_duration, "recording"),
            " without a duration; give a size in MB or a number of recordings");
    require(size.unit != SizeUnit::bytes || known.without_bytes == 0,
            "--shard-size: ", counted(known.without_bytes, "recording"),
            " without a file here; give a size in hours or a number of recordings");
    double all = 0;
    for (size_t i = 0; i < entries.size(); ++i)
        all += weight_of(entries[i], known.bytes[i], size.unit);
    const double shards = std::max(1.0, std::ceil(all / size.amount));
    require(shards <= kMaxShards, "--shard-size: would make ", shards, " shards, expected at most ",
            kMaxShards, "; give a larger size");
    std::vector<size_t> ends;
    double done = 0, current = 0;
    for (size_t i = 0; i < entries.size(); ++i) {
        const double weight = weight_of(entries[i], known.bytes[i], size.unit);
        // An entry belongs to the shard that its middle is in.
        const double shard =
            all > 0 ? std::min(shards - 1, std::floor((done + weight / 2) * shards / all)) : 0;
        if (i > 0 && shard != current) ends.push_back(i);
        current = shard;
        done += weight;
    }
    if (!entries.empty()) ends.push_back(entries.size());
    return ends;
}

std::vector<PlannedShard> write_plan(const fs::path& folder,
                                     const std::vector<ManifestEntry>& entries,
                                     const SizesKnown& known, const std::vector<size_t>& ends) {
    const ProfileSpan span("write");
    const fs::path table = folder / "shards.tsv";
    require(!fs::exists(table), table.string(),
            ": a plan exists there; use another --output-dir, or remove it");
    std::error_code failed;
    fs::create_directories(folder, failed);
    require(!failed, folder.string(), ": cannot make this folder: ", failed.message());
    std::vector<PlannedShard> plan;
    std::string rows = kHeading;
    size_t begin = 0;
    for (const size_t end : ends) {
        PlannedShard shard = sums(entries, known, begin, end);
        char name[16];
        std::snprintf(name, sizeof name, "%05zu", plan.size() + 1);
        shard.name = name;
        const fs::path path = folder / (shard.name + ".jsonl");
        AtomicFile file(path);
        for (; begin < end; ++begin) file.write(entries[begin].line + "\n");
        file.commit();
        shard.sha256 = models::sha256_of(path);
        rows += row_text(shard);
        plan.push_back(std::move(shard));
    }
    write_file(table, rows);
    return plan;
}

std::vector<PlannedShard> read_plan(const fs::path& folder) {
    const std::string path = (folder / "shards.tsv").string();
    const std::string text = read_file(path);
    require(text.starts_with(kHeading), path, ": expected the table of hark-shard plan");
    std::vector<PlannedShard> plan;
    for_each_line(text, [&](std::string_view line, size_t number) {
        if (number > 1) plan.push_back(row_of(line, concat(path, ": line ", number)));
    });
    return plan;
}

void require_planned(const fs::path& folder, const PlannedShard& shard) {
    const fs::path path = folder / (shard.name + ".jsonl");
    require_hash(path, models::sha256_of(path), shard);
}

std::vector<ManifestEntry> read_shard(const fs::path& folder, const PlannedShard& shard) {
    const fs::path path = folder / (shard.name + ".jsonl");
    const std::string text = read_file(path, size_t{4} << 30);
    require_hash(path, models::sha256_of_text(text), shard);
    return parse_manifest(text, folder, path.string());
}

std::optional<double> hours_of(const std::vector<PlannedShard>& plan) {
    double hours = 0;
    for (const PlannedShard& shard : plan) {
        if (!shard.hours) return std::nullopt;
        hours += *shard.hours;
    }
    return hours;
}

std::string hours_text(const std::optional<double>& hours) {
    if (!hours) return "-";
    char text[32];
    std::snprintf(text, sizeof text, "%.6f", *hours);
    return text;
}

std::string counted(int64_t n, const std::string& noun) {
    return concat(n, " ", noun, n == 1 ? "" : "s");
}

}  // namespace hark::shards
