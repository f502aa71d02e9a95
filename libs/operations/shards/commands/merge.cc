#include <unistd.h>

#include "core/files/io.h"
#include "operations/shards/commands/commands.h"
#include "operations/shards/merged.h"
#include "operations/shards/result.h"

namespace hark::shards {
namespace {

struct MergeOptions : ShardFolders {
    std::string format = "jsonl";

    void flags(Flags& flags) {
        ShardFolders::flags(flags);
        flags.add("format,f", format, merge_formats(), "FORM form of the output")
            .essential()
            .own_variable()
            .details(
                "jsonl: whisper-transcribe's lines, with id; a recording that failed has one with "
                "error. lhotse: supervisions. kaldi-text: a line per recording. ctm: a line per "
                "word; needs --word-timestamps.");
    }
};

void run_merge(const MergeOptions& options, Console& console) {
    options.check();
    const std::vector<PlannedShard> plan = read_plan(options.plan());
    const ResultSums sums = check_results(options.plan(), plan, options.results(), console);
    require(sums.shards == static_cast<int64_t>(plan.size()), plan.size() - sums.shards, " of ",
            plan.size(), " shards are missing or wrong; nothing is merged");
    ByteWriter out(STDOUT_FILENO, "stdout");
    merge_results(options.plan(), plan, options.results(), options.format,
                  [&](std::string_view text) { out.write(text); });
    out.flush();
    if (sums.failed > 0)
        console.warning(
            concat(counted(sums.failed, "recording"), " failed; hark-shard check counts them"));
}

}  // namespace

int merge_command(int argc, char** argv) {
    const ToolHelp help = {
        .name = "hark-shard merge",
        .summary = "Writes the results of all shards in the input's order.",
        .description =
            "The results are checked first, as hark-shard check does. If a shard is missing,\n"
            "nothing is written, and the exit status is 1.",
        .examples =
            "# transcripts as lines of JSON\n"
            "hark-shard merge shards results > transcripts.jsonl\n"
            "# Lhotse's supervisions\n"
            "hark-shard merge shards results -f lhotse | gzip > supervisions.jsonl.gz",
        .is_measured = true};
    return tool_main<MergeOptions>(help, argc, argv, run_merge);
}

}  // namespace hark::shards
