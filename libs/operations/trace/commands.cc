#include "operations/trace/commands.h"

#include <unistd.h>

#include "core/files/io.h"
#include "operations/trace/gpu_watch.h"
#include "operations/trace/merge.h"
#include "operations/trace/summary.h"

namespace hark::trace {
namespace {

struct TraceOptions {
    std::vector<std::string> files;

    void flags(Flags& flags) {
        flags.positional("FILE...", files, "what --profile has written, in the order of the pipe");
    }
    void check() const { require_usage(!files.empty(), "no FILE is given"); }
};

void run_merge(const TraceOptions& options, Console& console) {
    options.check();
    const TraceFiles files(options.files);
    ByteWriter out(STDOUT_FILENO, "stdout");
    merge_traces(files, console, [&](const std::string& text) { out.write(text); });
    out.flush();
}

void run_summary(const TraceOptions& options, Console& console) {
    options.check();
    const TraceFiles files(options.files);
    ByteWriter out(STDOUT_FILENO, "stdout");
    const TraceSums sums = sum_up(files, console);
    require(!sums.tools.empty() || !sums.gpus.empty(), options.files.front(),
            ": no spans; expected what --profile writes");
    out.write(summary_text(sums));
    out.flush();
}

struct NoOptions {
    void flags(Flags&) {}
};

void run_watch(const NoOptions&, Console&) {
    ByteWriter out(STDOUT_FILENO, "stdout");
    watch_gpus([&](const std::string& text) {
        out.write(text);
        out.flush();
    });
}

}  // namespace

int merge_command(int argc, char** argv) {
    const ToolHelp help = {
        .name = "hark-trace merge",
        .summary = "Makes one trace of the profiles of a pipe's tools.",
        .description =
            "Perfetto (ui.perfetto.dev) and chrome://tracing open it. Arrows follow each\n"
            "recording from tool to tool. The profiles are of one machine: their times are of\n"
            "its clock, and files of others are refused.",
        .examples =
            "# the profile of a pipe\n"
            "audio-decode talk.mp3 --profile d.json |\n"
            "    mel --profile m.json | whisper-transcribe --profile w.json\n"
            "hark-trace merge d.json m.json w.json > trace.json"};
    return tool_main<TraceOptions>(help, argc, argv, run_merge);
}

int summary_command(int argc, char** argv) {
    const ToolHelp help = {
        .name = "hark-trace summary",
        .summary = "Prints which stage of a pipe was busy, and which waited.",
        .description =
            "A row per tool and stage: its spans, the seconds that its threads were busy in it,\n"
            "and those that they were blocked on the pipe, each without what other spans\n"
            "within them took. The last line names the tool whose busiest thread was busy the\n"
            "longest: a faster one would make the pipe faster.",
        .examples =
            "# of profiles, or of a merged trace\n"
            "hark-trace summary trace.json"};
    return tool_main<TraceOptions>(help, argc, argv, run_summary);
}

int watch_command(int argc, char** argv) {
    const ToolHelp help = {
        .name = "hark-trace watch",
        .summary = "Writes what this machine's GPUs do, until SIGINT or SIGTERM comes.",
        .description =
            "Five times per second and for each GPU: how busy it is, watts, MHz, memory, joules\n"
            "since the driver's start, and what limits its clock, as counters of a trace. merge\n"
            "takes the file, and summary sums it up.",
        .examples =
            "# during a run in another shell\n"
            "hark-trace watch > gpus.json"};
    return tool_main<NoOptions>(help, argc, argv, run_watch);
}

}  // namespace hark::trace
