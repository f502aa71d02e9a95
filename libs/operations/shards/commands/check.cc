#include <unistd.h>

#include "core/files/io.h"
#include "operations/shards/commands/commands.h"
#include "operations/shards/result.h"

namespace hark::shards {
namespace {

struct CheckOptions : ShardFolders {};

void run_check(const CheckOptions& options, Console& console) {
    options.check();
    const std::vector<PlannedShard> plan = read_plan(options.plan());
    const ResultSums sums = check_results(options.plan(), plan, options.results(), console);
    int64_t planned = 0;
    for (const PlannedShard& shard : plan) planned += shard.recordings;
    ByteWriter out(STDOUT_FILENO, "stdout");
    out.write("what\tshards\trecordings\thours\n");
    out.write(
        concat("planned\t", plan.size(), "\t", planned, "\t", hours_text(hours_of(plan)), "\n"));
    out.write(concat("transcribed\t", sums.shards, "\t", sums.transcribed, "\t",
                     hours_text(sums.hours), "\n"));
    out.write(concat("failed\t-\t", sums.failed, "\t", hours_text(sums.failed_hours), "\n"));
    out.write(concat("missing\t", static_cast<int64_t>(plan.size()) - sums.shards, "\t",
                     planned - sums.transcribed - sums.failed, "\t-\n"));
    out.flush();
}

}  // namespace

void ShardFolders::flags(Flags& flags) {
    flags.positional("SHARDS RESULTS", words, "the folder of the plan, and that of the results",
                     Completes::directory);
}

void ShardFolders::check() const {
    require_usage(words.size() == 2, "expected the folders of the shards and of the results, got ",
                  words.size(), words.size() == 1 ? " argument" : " arguments");
}

int check_command(int argc, char** argv) {
    const ToolHelp help = {
        .name = "hark-shard check",
        .summary = "Counts whether the results have every recording of the plan.",
        .description =
            "Recordings that were transcribed and those that failed are together those of\n"
            "the plan, in each shard, and all shards were made with one model and the same\n"
            "options. The exit status is 1 if not: what is missing or wrong is named. The\n"
            "table on stdout has shards, recordings and hours.",
        .examples =
            "# is the work done?\n"
            "hark-shard check shards results\n"
            "# recordings that failed, and why\n"
            "jq -r 'select(.error) | [.id, .error] | @tsv' results/*.jsonl",
        .is_measured = true};
    return tool_main<CheckOptions>(help, argc, argv, run_check);
}

}  // namespace hark::shards
