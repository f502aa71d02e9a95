#include "operations/shards/plan.h"

#include <iterator>

#include "core/ranges.h"
#include "operations/shards/commands/commands.h"
#include "operations/shards/inputs.h"

namespace hark::shards {
namespace {

struct PlanOptions {
    std::vector<std::string> inputs;
    std::string output, size, input_format;

    void flags(Flags& flags) {
        flags.positional("INPUT...", inputs, "folders of recordings, or manifests; - is stdin");
        flags.add_name("output-dir,o", output, "DIR folder of the shards")
            .essential()
            .completes(Completes::directory)
            .own_variable();
        flags
            .add("shard-size", size, "SIZE hours (20h), bytes (1GB) or recordings (500) of a shard")
            .essential()
            .shows_default("20h, 1GB or 500: the first that is known of all");
        flags.add("input-format", input_format, input_formats(), "FORM form of the inputs")
            .essential()
            .own_variable()
            .shows_default("recordings of a folder, nemo of a file")
            .details(
                "nemo: lines of JSON with audio_filepath. kaldi: a folder with wav.scp, and "
                "segments, text and utt2spk if they are there. lhotse: recordings or cuts as "
                "lines of JSON; zcat FILE.jsonl.gz | hark-shard plan - reads compressed ones. "
                "webdataset: a tar whose samples are a recording and its .txt or .json.");
    }
};

void say_size(const SizesKnown& known, const ShardSize& size, Console& console) {
    if (size.unit == SizeUnit::bytes)
        console.warning(concat(counted(known.without_duration, "recording"),
                               " without a duration: shards are of the same file size"));
    if (size.unit == SizeUnit::recordings)
        console.warning(concat(counted(known.without_duration, "recording"),
                               " without a duration and ", known.without_bytes,
                               " without a whole file here: shards are of the same number of "
                               "recordings"));
}

void run_plan(const PlanOptions& options, Console& console) {
    require_usage(!options.inputs.empty(), "expected a folder or a manifest");
    require_usage(!options.output.empty(), "--output-dir is required");
    const ShardSize given = options.size.empty() ? ShardSize{} : parse_size(options.size);
    std::vector<ManifestEntry> entries;
    for (const std::string& input : options.inputs) {
        std::vector<ManifestEntry> more = read_input(input, options.input_format);
        std::move(more.begin(), more.end(), std::back_inserter(entries));
    }
    require(!entries.empty(), joined(options.inputs), ": found no recordings");
    require_unique_ids(entries);
    const SizesKnown known = measure(entries);
    const ShardSize size = options.size.empty() ? default_size(known) : given;
    if (options.size.empty()) say_size(known, size, console);
    const std::vector<PlannedShard> plan =
        write_plan(options.output, entries, known, cut(entries, known, size));
    const std::optional<double> hours = hours_of(plan);
    console.table_line(concat(counted(std::ssize(plan), "shard"), ", ",
                              counted(std::ssize(entries), "recording"), ", ",
                              hours ? hours_text(hours) + " h" : "hours not known"));
}

}  // namespace

int plan_command(int argc, char** argv) {
    const ToolHelp help = {
        .name = "hark-shard plan",
        .summary = "Cuts a list of recordings into shards of about the same size.",
        .description =
            "--output-dir gets NAME.jsonl for each shard, a line per recording as in\n"
            "NeMo's manifests, and last shards.tsv: name, recordings, hours, bytes and\n"
            "SHA-256. The recordings keep their order. A shard has the size that --shard-size\n"
            "gives, up to one recording more or less.",
        .examples =
            "# a folder of recordings\n"
            "hark-shard plan lectures -o shards\n"
            "# a NeMo manifest, shards of 50 hours\n"
            "hark-shard plan train.jsonl -o shards --shard-size 50h\n"
            "# a folder of Kaldi with wav.scp and segments\n"
            "hark-shard plan data/train -o shards --input-format kaldi",
        .is_measured = true};
    return tool_main<PlanOptions>(help, argc, argv, run_plan);
}

}  // namespace hark::shards
