// vad: finds the speech in an audio stream and adds its regions to the stream.
//
//   stdin -> audio chunks -> VadStream (LogMel -> Detector, or Silero) -> regions -> stdout
//
// Every chunk is written at once, unchanged except for the tensor `speech` and the detector's name.
// A region is written with the first chunk after whose samples it is known, the rest with the last
// one. A recording that broke is passed on with its error, as mel does.
#include <unistd.h>

#include <chrono>
#include <map>

#include "core/profile/profile.h"
#include "speech/vad_stream.h"

namespace {

using namespace hark;

struct Options {
    std::string model;
    RegionOptions regions;

    void flags(Flags& flags) {
        flags.section("Model");
        flags.add_name("model,m", model, "MODEL file of Silero VAD's weights")
            .essential()
            .own_variable()
            .completes(Completes::file)
            .details("Without it, the built-in detector, which needs no weights.");
        regions.flags(flags);
    }

    void check() const {
        require_not_terminal("an audio stream");
        require_piped_stdin("an audio stream", "audio-decode talk.mp3 | vad | mel > talk.mel");
    }
};

void run(const Options& options, Console& console) {
    options.check();
    widen_pipe(STDIN_FILENO);
    const auto silero = options.model.empty() ? nullptr : load_silero(options.model);
    ByteWriter out(STDOUT_FILENO, "stdout");
    ByteReader in(STDIN_FILENO, "stdin");
    RecordingReader reader(in, "audio", "vad comes before mel: audio-decode FILE | vad | mel");
    std::map<std::string, VadStream> open;
    try {
        while (std::optional<Chunk> chunk = reader.next()) {
            const auto began = std::chrono::steady_clock::now();
            require(!chunk->document.find("speech"), chunk->document.where,
                    ": this stream has been through vad already; leave one vad out");
            const auto stream = open.try_emplace(chunk->recording, options.regions, silero).first;
            {
                const ProfileSpan span("speech");
                stream->second.add_regions(*chunk);
            }
            if (chunk->last) open.erase(stream);
            const std::chrono::duration<double, std::milli> took =
                std::chrono::steady_clock::now() - began;
            console.stage("speech", describe(chunk->document.tensor("speech")), took.count());
            write_chunk(out, std::move(*chunk));
            out.flush();
        }
    } catch (const Error& failure) {
        for (auto& [id, stream] : open) write_chunk(out, stream.end_with(failure.what()));
        out.flush();
        throw;
    }
}

constexpr hark::ToolHelp kHelp = {
    .name = "vad",
    .summary = "Finds the speech in an audio stream and adds its regions to the stream.",
    .description =
        "Reads what audio-decode writes, and writes it with the regions of speech. mel passes\n"
        "them on, and whisper-transcribe decodes these regions alone.",
    .examples = R"(# Transcribe only the speech of a noisy recording
audio-decode street.wav | vad | mel | whisper-transcribe
# Silero's detector, with its own defaults
audio-decode street.wav | vad -m silero_vad_16k.safetensors \
    --min-speech 0.25 --min-silence 0.1 --pad 0.03 | mel | whisper-transcribe
# Short pauses end a region too
audio-decode talk.mp3 | vad --min-silence 0.2 | mel | whisper-transcribe
)",
    .is_measured = true};

}  // namespace

int main(int argc, char** argv) { return hark::tool_main(kHelp, argc, argv, run); }
