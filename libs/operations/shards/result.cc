#include "operations/shards/result.h"

#include <cmath>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "core/profile/profile.h"
#include "hub/digest.h"

namespace hark::shards {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxDoneBytes = size_t{1} << 20;
constexpr double kHoursTolerance = 0.01;  // of the plan's

// Throws Error saying what is wrong with the shard's result.
ShardDone checked(const fs::path& plan_folder, const PlannedShard& shard, const fs::path& results) {
    const ProfileSpan span("read");
    const fs::path path = results / (shard.name + ".done");
    require(fs::exists(path), "shard ", shard.name, ": is missing: no ", path.string(), " (",
            counted(shard.recordings, "recording"),
            shard.hours ? ", " + hours_text(shard.hours) + " h" : "", ")");
    const ShardDone done = read_done(path);
    require(done.shard_sha256 == shard.sha256, path.string(),
            ": is the result of another plan than ", plan_folder.string(),
            "; remove it, and run the shard again");
    require_planned(plan_folder, shard);
    require(
        done.recordings == shard.recordings && done.transcribed + done.failed == shard.recordings,
        path.string(), ": ", done.transcribed, " transcribed and ", done.failed,
        " failed recordings, expected ", shard.recordings, "; remove it, and run the shard again");
    const fs::path lines = results / (shard.name + ".jsonl");
    require(fs::exists(lines) && models::sha256_of(lines) == done.result_sha256, lines.string(),
            ": is missing or was changed; remove ", path.string(), ", and run the shard again");
    return done;
}

}  // namespace

ShardDone read_done(const fs::path& path) {
    const std::string where = path.string();
    nlohmann::ordered_json fields = parse_object(read_file(path, kMaxDoneBytes), where);
    ShardDone done;
    done.recordings = count_at(fields, "recordings", where);
    done.transcribed = count_at(fields, "transcribed", where);
    done.failed = count_at(fields, "failed", where);
    done.hours = seconds_at(fields, "hours", where).value_or(0);
    done.failed_hours = seconds_at(fields, "failed_hours", where).value_or(0);
    done.shard_sha256 = text_at(fields, "shard_sha256", where);
    done.result_sha256 = text_at(fields, "result_sha256", where);
    const auto job = fields.find("job");
    require(job != fields.end() && job->is_object(), where, ": expected an object named job");
    done.job = json_text(*job);
    return done;
}

ResultSums check_results(const fs::path& plan_folder, const std::vector<PlannedShard>& plan,
                         const fs::path& results, Console& console) {
    ResultSums sums;
    std::string first, job;
    for (const PlannedShard& shard : plan) {
        try {
            const ShardDone done = checked(plan_folder, shard, results);
            if (job.empty()) job = done.job, first = shard.name;
            require(done.job == job, "shard ", shard.name,
                    ": was made with another model, version or other options than shard ", first,
                    "; remove its .done, and run it again");
            const double all = done.hours + done.failed_hours;
            if (shard.hours && std::abs(all - *shard.hours) > *shard.hours * kHoursTolerance)
                console.warning(concat("shard ", shard.name, ": ", hours_text(shard.hours),
                                       " h planned, ", hours_text(all), " h found"));
            ++sums.shards;
            sums.transcribed += done.transcribed;
            sums.failed += done.failed;
            sums.hours += done.hours;
            sums.failed_hours += done.failed_hours;
        } catch (const Error& wrong) {
            console.error(wrong.what());
        }
    }
    return sums;
}

}  // namespace hark::shards
