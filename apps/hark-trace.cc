// hark-trace COMMAND: one trace of the profiles of a pipe's tools, and what it says of each stage.
#include "core/cli/cli.h"
#include "operations/trace/commands.h"

using namespace hark::trace;

namespace {

constexpr hark::ToolHelp kHelp = {
    .name = "hark-trace",
    .summary = "Joins the profiles of a pipe's tools, and sums them up.",
    .description =
        "Every tool that works for long writes one with --profile FILE. hark trace COMMAND\n"
        "is the same as hark-trace COMMAND.",
    .examples =
        "# a profile of all tools of a pipe\n"
        "hark transcribe talk.mp3 --profile trace.json\n"
        "# which stage was busy, and which waited\n"
        "hark-trace summary trace.json"};

constexpr hark::Command kCommands[] = {
    {"merge", "make one trace of several profiles", merge_command},
    {"watch", "write what the GPUs do, until a signal comes", watch_command},
    {"summary", "print which stage was busy and which waited", summary_command}};

}  // namespace

int main(int argc, char** argv) { return hark::commands_main(kHelp, kCommands, argc, argv); }
