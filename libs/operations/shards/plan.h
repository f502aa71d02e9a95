// Recordings cut into shards of about the same size, in their order, and the table of the shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "operations/shards/manifest.h"

namespace hark::shards {

// What the size of a shard is counted in.
enum class SizeUnit { hours, bytes, recordings };

struct ShardSize {
    SizeUnit unit = SizeUnit::hours;
    double amount = 0;  // more than 0
};

// The size in "20h", "500MB", "2GB" or "1000" (recordings). Throws UsageError.
ShardSize parse_size(const std::string& text);

// What is known of the entries' sizes.
struct SizesKnown {
    std::vector<std::optional<int64_t>> bytes;  // of each entry that is a whole file here
    int64_t without_duration = 0, without_bytes = 0;
};
SizesKnown measure(const std::vector<ManifestEntry>& entries);

// 20 h if all durations are known, else 1 GB if all files' sizes are, else 500 recordings.
ShardSize default_size(const SizesKnown& known);

// Ends of the shards: [0, ends[0]), [ends[0], ends[1]), ... There are ceil(all / amount) of them,
// of the same size up to the entries at their ends; those that would be empty are left out. Throws
// Error if an entry's size is not known in that unit.
std::vector<size_t> cut(const std::vector<ManifestEntry>& entries, const SizesKnown& known,
                        const ShardSize& size);

// A row of shards.tsv.
struct PlannedShard {
    std::string name;  // its file is NAME.jsonl
    int64_t recordings = 0;
    std::optional<double> hours;  // if all durations are known
    std::optional<int64_t> bytes;
    std::string sha256;  // of NAME.jsonl
};

// Writes NAME.jsonl of each shard, and then shards.tsv. Returns its rows. Throws Error if the
// folder has a plan already.
std::vector<PlannedShard> write_plan(const std::filesystem::path& folder,
                                     const std::vector<ManifestEntry>& entries,
                                     const SizesKnown& known, const std::vector<size_t>& ends);

// The rows of FOLDER/shards.tsv. Throws Error naming the file or the line.
std::vector<PlannedShard> read_plan(const std::filesystem::path& folder);

// Throws Error if the shard's file is not the planned one.
void require_planned(const std::filesystem::path& folder, const PlannedShard& shard);

// The entries of a shard. Throws Error if its file is not the planned one.
std::vector<ManifestEntry> read_shard(const std::filesystem::path& folder,
                                      const PlannedShard& shard);

// Hours of all shards; none if one is not known.
std::optional<double> hours_of(const std::vector<PlannedShard>& plan);

// A number of hours with six decimals, or "-".
std::string hours_text(const std::optional<double>& hours);

// "1 shard", "2 shards".
std::string counted(int64_t n, const std::string& noun);

}  // namespace hark::shards
