// whisper-transcribe: log-mel stream -> text, subtitles, tables, json, jsonl or a page, with
// Whisper models.
#include <unistd.h>

#include "core/cli/cli.h"
#include "core/files/io.h"
#include "core/sandbox/privacy.h"
#include "whisper/transcribe/transcribe_stdin.h"

namespace {

using namespace hark;

constexpr const char* kDescription =
    "The stream comes from audio-decode and mel, which read any number of\n"
    "recordings. By default the text is that of openai-whisper with --beam_size 1.\n"
    "Transcripts go to stdout, or with --output-dir to a file per recording and\n"
    "format. A recording that cannot be read does not stop the others; the exit\n"
    "status is then 1.";

constexpr const char* kExamples =
    "# the text of a recording\n"
    "audio-decode talk.mp3 | mel | whisper-transcribe --model small\n"
    "# subtitles of all films of a folder\n"
    "audio-decode films/* | mel | whisper-transcribe -m small -f srt -o subtitles\n"
    "# which languages are spoken\n"
    "audio-decode *.wav | mel | whisper-transcribe --model small --task detect";

constexpr const char* kFiles =
    "~/.local/share/hark/models  installed models, see hark-model(1)\n"
    "~/.config/hark/config  options, `name = value` per line";

void run(const whisper::RunOptions& given, Console& console) {
    whisper::RunOptions options = given;
    options.check();
    if (options.output.is_private) keep_private();
    if (!options.check_only) {
        require_piped_stdin("a mel stream", "audio-decode talk.mp3 | mel | whisper-transcribe");
        widen_pipe(STDIN_FILENO);
    }
    whisper::transcribe_stdin(options, console);
}

}  // namespace

int main(int argc, char** argv) {
    return tool_main<whisper::RunOptions>(
        {.name = "whisper-transcribe",
         .summary = "Transcribes or translates the recordings of a mel stream on stdin.",
         .description = kDescription,
         .examples = kExamples,
         .files = kFiles,
         .shows_progress = true,
         .uses_color = true,
         .traces = true,
         .is_measured = true},
        argc, argv, run);
}
