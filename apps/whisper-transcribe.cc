// whisper-transcribe: log-mel stream -> text, subtitles, tables, json or jsonl, with Whisper
// models.
#include "core/cli.h"
#include "whisper/transcribe_stdin.h"

namespace {

using namespace hark;

void run(const whisper::RunOptions& given, Console& console) {
    whisper::RunOptions options = given;
    options.check();
    require_piped_stdin("a mel stream");
    whisper::transcribe_stdin(options, console);
}

}  // namespace

int main(int argc, char** argv) {
    return tool_main<whisper::RunOptions>(
        {.name = "whisper-transcribe",
         .summary = "Transcribes or translates the recordings of a mel stream on stdin.",
         .shows_progress = true,
         .uses_color = true,
         .traces = true},
        argc, argv, run);
}
