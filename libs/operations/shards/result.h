// A shard's result: NAME.jsonl, and NAME.done, which is written last.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/cli/cli.h"
#include "operations/shards/plan.h"

namespace hark::shards {

// What NAME.done says.
struct ShardDone {
    int64_t recordings = 0, transcribed = 0, failed = 0;
    double hours = 0;         // of the transcribed, as they were measured
    double failed_hours = 0;  // of the failed, as the plan states them; 0 if it does not
    std::string shard_sha256, result_sha256;
    std::string job;  // its other keys as text: equal for all shards of a run
};

// Throws Error naming the file.
ShardDone read_done(const std::filesystem::path& path);

// Sums over the shards that are done.
struct ResultSums {
    int64_t shards = 0, transcribed = 0, failed = 0;
    double hours = 0, failed_hours = 0;
};

// Whether the results account for every recording of the plan: transcribed + failed = planned, in
// each shard. What is missing or wrong goes to `console` as errors; hours that differ from the
// plan's by more than 1% as warnings. Also with errors the sums are those of the shards that are
// right.
ResultSums check_results(const std::filesystem::path& plan_folder,
                         const std::vector<PlannedShard>& plan,
                         const std::filesystem::path& results, Console& console);

}  // namespace hark::shards
