// mel: Whisper's log-mel front end, from an audio stream, an audio file or raw PCM on stdin.
//
//   stdin -> audio chunks -> MelStream (CPU or GPU) -> mel chunks -> stdout
//
// A stream is read, computed and written on a thread each.
//
// A recording that broke in the stage before is passed on with its error, and the exit status stays
// 0: that stage has named it, and the last one names it again. What breaks here is exit status 1.
#include <unistd.h>

#include <chrono>

#include "audio/mel_input.h"
#include "core/machine/cores.h"
#include "core/profile/run_counts.h"
#include "formats/chunk_writer.h"
#include "kernels/runtime/backend.h"

namespace {

using namespace hark;

struct Options {
    MelOptions mel;
    MelInput input;
    ComputeOptions compute{.device = "cpu"};

    void flags(Flags& flags) {
        mel.flags(flags);
        input.flags(flags);
        flags.section("Computing");
        add_device(flags, compute.device)
            .details(
                "All give the same bytes. A GPU pays for its start above some hours of sound.");
        flags.add("threads,t", compute.threads, "N CPU threads; 0: all cores", 0, 4096)
            .details(kThreadsDetails);
    }

    void check() const {
        mel.chunk.check();
        input.check();
        require_not_terminal("a mel stream");
        require_piped_stdin("an audio stream or an audio file",
                            "audio-decode talk.mp3 | mel > talk.mel");
    }
};

void run(const Options& options, Console& console) {
    options.check();
    widen_pipe(STDIN_FILENO);
    ByteWriter out(STDOUT_FILENO, "stdout");
    ChunkWriter writer(out);
    auto began = std::chrono::steady_clock::now();
    const MelStream::Emit emit = [&](Chunk chunk) {
        const auto now = std::chrono::steady_clock::now();
        console.stage("log_mel", describe(chunk.values()),
                      std::chrono::duration<double, std::milli>(now - began).count());
        writer.write(std::move(chunk));
        began = std::chrono::steady_clock::now();
    };
    Context ctx = options.compute.context(console);
    MelStream stream(options.mel, &ctx);
    options.input.read_all(stream, options.mel.chunk, ctx.on_cuda(), emit, console);
    writer.finish();
    note_model("log-mel " + options.mel.mels, ctx.on_cuda() ? "cuda" : "cpu");
    add_memory("activations", static_cast<int64_t>(ctx.arena.peak()));
}

constexpr hark::ToolHelp kHelp = {
    .name = "mel",
    .summary = "Computes Whisper's log-mel spectra of an audio stream or an audio file.",
    .description =
        "Reads an audio stream of any number of recordings, one audio or video file, or raw\n"
        "PCM on stdin. Writes a mel stream: 100 frames per second, log10 of the power in\n"
        "each mel band. whisper-transcribe normalises them.",
    .examples = R"(# The spectra of two recordings
audio-decode talk.mp3 meeting.flac | mel > both.mel
# One file, for a model with 128 mel bands
mel --mels 128 < talk.mp3 | whisper-transcribe --model large-v3
# What a microphone records now, as text
arecord -q -f S16_LE -r 16000 -t raw |
    mel --raw s16le --chunk 1 | whisper-transcribe --live
)",
    .is_measured = true};

}  // namespace

int main(int argc, char** argv) { return hark::tool_main(kHelp, argc, argv, run); }
