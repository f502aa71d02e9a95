// hark-shard COMMAND: cuts lists of recordings into shards, and joins and checks their results.
#include "core/cli/cli.h"
#include "operations/shards/commands/commands.h"

using namespace hark::shards;

namespace {

constexpr hark::ToolHelp kHelp = {
    .name = "hark-shard",
    .summary = "Cuts lists of recordings into shards, and joins and checks their results.",
    .description =
        "hark worker transcribes shards; hark parallel and hark slurm run it on many\n"
        "machines. hark shard COMMAND is the same as hark-shard COMMAND.",
    .examples =
        "# shards of a folder\n"
        "hark-shard plan lectures -o shards\n"
        "# this machine transcribes them; so may others at the same time\n"
        "hark worker --shards shards -o results -- --model small\n"
        "# all recordings are there; their transcripts in one file\n"
        "hark-shard check shards results\n"
        "hark-shard merge shards results > transcripts.jsonl"};

constexpr hark::Command kCommands[] = {
    {"plan", "cut a folder or a manifest into shards", plan_command},
    {"check", "count whether the results have every recording", check_command},
    {"merge", "write all results in the input's order", merge_command},
    {"job", "describe a plan, a model and options by hashes", job_command},
    {"collect", "make a shard's result of hark batch's files", collect_command}};

}  // namespace

int main(int argc, char** argv) { return hark::commands_main(kHelp, kCommands, argc, argv); }
