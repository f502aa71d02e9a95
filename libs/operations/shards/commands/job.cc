#include "operations/shards/job.h"

#include <unistd.h>

#include "core/files/io.h"
#include "operations/shards/commands/commands.h"
#include "operations/shards/manifest.h"

namespace hark::shards {
namespace {

struct JobOptions {
    std::vector<std::string> words;
    std::string model;

    void flags(Flags& flags) {
        flags.positional("SHARDS [OPTION...]", words,
                         "the folder of the plan, and options of hark batch after --",
                         Completes::directory);
        flags.add("model,m", model, "MODEL Whisper model: a name or a path")
            .essential()
            .completes(Completes::model)
            .variable("HARK_WHISPER_MODEL");
    }
};

void run_job(const JobOptions& options, Console&) {
    require_usage(!options.words.empty(), "expected the folder of the shards");
    ByteWriter out(STDOUT_FILENO, "stdout");
    out.write(json_text(describe_job(options.words[0], options.model,
                                     {options.words.begin() + 1, options.words.end()})) +
              "\n");
    out.flush();
}

}  // namespace

int job_command(int argc, char** argv) {
    const ToolHelp help = {
        .name = "hark-shard job",
        .summary = "Describes a job by hashes of its plan, model and options.",
        .description =
            "Writes one line of JSON. Results that have the same are of one job. hark worker\n"
            "uses it.",
        .examples =
            "# the SHA-256 of a model\n"
            "hark-shard job shards --model small | jq -r .model_sha256",
        .is_measured = true};
    return tool_main<JobOptions>(help, argc, argv, run_job);
}

}  // namespace hark::shards
