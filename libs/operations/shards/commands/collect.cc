#include "operations/shards/collect.h"

#include <algorithm>

#include "operations/shards/commands/commands.h"

namespace hark::shards {
namespace {

struct CollectOptions {
    std::vector<std::string> words;
    double seconds = 0;

    void flags(Flags& flags) {
        flags.positional("SHARDS NAME WORK RESULTS", words,
                         "the plan, a shard of it, what hark batch has written, the results");
        flags
            .add("seconds", seconds, "SECONDS that the work took, for the estimate of costs", 0,
                 1e9)
            .essential();
    }
};

void run_collect(const CollectOptions& options, Console&) {
    require_usage(options.words.size() == 4, "expected SHARDS, NAME, WORK and RESULTS, got ",
                  options.words.size(), " arguments");
    const std::vector<PlannedShard> plan = read_plan(options.words[0]);
    const auto shard = std::find_if(plan.begin(), plan.end(), [&](const PlannedShard& planned) {
        return planned.name == options.words[1];
    });
    require(shard != plan.end(), options.words[0], ": has no shard '", options.words[1], "'");
    collect_shard(options.words[0], *shard, options.words[2], options.words[3], options.seconds);
}

}  // namespace

int collect_command(int argc, char** argv) {
    const ToolHelp help = {
        .name = "hark-shard collect",
        .summary = "Makes a shard's result of what hark batch has written.",
        .description =
            "Writes RESULTS/NAME.jsonl, and then RESULTS/NAME.done. hark worker uses it.",
        .examples =
            "# as hark worker does\n"
            "hark-shard collect shards 00001 results/.work/00001 results",
        .is_measured = true};
    return tool_main<CollectOptions>(help, argc, argv, run_collect);
}

}  // namespace hark::shards
