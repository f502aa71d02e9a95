// audio-decode FILE...: any audio or video file to an audio stream, mono float32 at 16 kHz.
//
//   file -> Input -> Decoder (WAV, libav, libsndfile) -> Resampler -> chunks -> stdout
//
// Each thread of ReadAhead decodes a file, or a part of one, in a sandbox; main writes in order.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "audio/decoder.h"
#include "audio/read_ahead.h"
#include "audio/wav.h"
#include "core/files/files.h"
#include "core/machine/cores.h"
#include "core/sandbox/sandbox.h"

namespace {
using namespace hark;

struct Options {
    std::vector<std::string> files;
    ReadOptions read;
    ChunkOptions chunk;
    SandboxOptions sandbox;
    int64_t jobs = std::clamp<int64_t>(available_cores(), 1, 32);

    void flags(Flags& flags) {
        flags.positional("FILE...", files, "audio or video files; - is standard input");
        read.flags(flags);
        sandbox.flags(flags);
        flags.section("Output");
        chunk.flags(flags);
        flags.section("Computing");
        flags.add("jobs", jobs, "N files to decode at once", 1, 256)
            .details("Threads without a file decode parts of a long MP3, FLAC or ALAC file.");
    }

    void check() const {
        require_usage(!files.empty(), "no FILE is given; - reads standard input");
        const int64_t standard_inputs = std::count(files.begin(), files.end(), "-");
        require_usage(standard_inputs <= 1, "- is given ", standard_inputs, " times, expected one");
        chunk.check();
        require_not_terminal("an audio stream");
        if (standard_inputs > 0)
            require_piped_stdin("an audio file", "ffmpeg -i URL -f wav - | audio-decode -");
    }
};

// A pipe may have to be copied to a file, which nobody can make in the sandbox.
void enter_sandbox(const Options& options, Console& console) {
    if (options.sandbox.mode == "off") return;
    if (!are_pcm_wav_files(options.files)) load_decoders();
    std::vector<std::string> named;
    for (const std::string& file : options.files) {
        struct stat info {};
        const int failed = file == "-" ? ::fstat(STDIN_FILENO, &info) : ::stat(file.c_str(), &info);
        if (!failed && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) reserve_unlinked_file();
        if (file != "-") named.push_back(file);
    }
    options.sandbox.enter(named, console);
}

void run(const Options& options, Console& console) {
    options.check();
    const int64_t ahead = affordable_samples_ahead();  // the sandbox hides the machine's files
    enter_sandbox(options, console);
    ByteWriter out(STDOUT_FILENO, "stdout");
    ReadAhead input(options.files, options.read, options.chunk.length(kSampleRate),
                    static_cast<int>(options.jobs), ahead);
    while (std::optional<Chunk> chunk = input.next()) {
        // All channels of a file break together: it is named once.
        if (chunk->channel == "0") {
            if (!chunk->error.empty()) console.error(chunk->error);
            if (!chunk->warning.empty()) console.warning(chunk->warning);
        }
        write_chunk(out, std::move(*chunk));
        out.flush();
    }
}

constexpr hark::ToolHelp kHelp = {
    .name = "audio-decode",
    .summary = "Decodes audio and video files to an audio stream, mono at 16 kHz.",
    .description =
        "Reads every format that FFmpeg's libraries and libsndfile read, video too. A pipe\n"
        "is decoded while it is read, if the format allows that. A file that cannot be\n"
        "read, or lacks a part, is named, the others are decoded, and the exit status is 1.",
    .examples = R"(# Two recordings as text
audio-decode talk.mp3 film.mkv | mel | whisper-transcribe
# Half a minute from 1:30 on
audio-decode --start 90 --duration 30 talk.mp3 | mel | whisper-transcribe
# What another program downloads
curl -s https://host/talk.mp3 | audio-decode - | mel | whisper-transcribe
)",
    .is_measured = true};

}  // namespace

int main(int argc, char** argv) { return hark::tool_main(kHelp, argc, argv, run); }
