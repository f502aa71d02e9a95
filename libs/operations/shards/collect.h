// The result of a shard, from what hark batch has written of its recordings.
#pragma once

#include <filesystem>

#include "operations/shards/plan.h"

namespace hark::shards {

// Writes RESULTS/NAME.jsonl and then RESULTS/NAME.done. The recordings of the shard have the
// numbers 000001, 000002, ... in `work`:
//   out/NUMBER.jsonl    the transcript
//   out/.hark/seconds   lines of a recording's path, a tab and its length
//   out/failed.tsv, unfetched.tsv   lines of a path, a tab and an error
//   job.json            describe_job's object, in one line
// A path is .../NUMBER or .../NUMBER.ENDING. Throws Error naming the recordings that have neither a
// transcript nor an error; nothing is written then.
void collect_shard(const std::filesystem::path& plan_folder, const PlannedShard& shard,
                   const std::filesystem::path& work, const std::filesystem::path& results,
                   double wall_seconds);

}  // namespace hark::shards
