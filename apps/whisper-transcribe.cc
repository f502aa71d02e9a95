// whisper-transcribe: log-mel stream -> text, srt, vtt, tsv, json, jsonl, with Whisper models.
#include <unistd.h>

#include <map>

#include "core/cli.h"
#include "core/models.h"
#include "core/progress.h"
#include "core/recordings.h"
#include "whisper/output.h"
#include "whisper/transcribe.h"

namespace {

using namespace hark;
using namespace hark::whisper;

constexpr double kFramesPerSecond = 100;

struct Options {
    std::string model;
    TranscribeOptions transcribe;
    OutputOptions output;
    ComputeOptions compute;

    void flags(Flags& flags) {
        flags.add("model", model,
                  "NAME|DIR `demo`, or another model by its name; with a '/' in it, the directory "
                  "of a Hugging Face Whisper model");
        transcribe.flags(flags);
        output.flags(flags);
        compute.flags(flags);
    }
};

// The reference passes over a clip behind the recording's end without a word.
void warn_of_clips_behind(const std::vector<double>& clips, const MelRecording& mel,
                          const std::string& source, Console& console) {
    const double seconds = static_cast<double>(mel.content_frames()) / kFramesPerSecond;
    for (size_t i = 0; i < clips.size(); i += 2)
        if (clips[i] >= seconds)
            console.warning(concat(source, ": --clip begins at ", clips[i],
                                   " s, but the recording is only ", seconds,
                                   " s long: nothing is transcribed there"));
}

// One recording, complete: transcribed and written. `chunk` is its last one.
void transcribe(const Options& options, Transcriber& transcriber, const MelRecording& mel,
                const Chunk& chunk, TranscriptOutput& output, Console& console) {
    RecordingInfo info{chunk.source, chunk.channel, ""};
    std::string text;
    if (chunk.error.empty())
        warn_of_clips_behind(options.transcribe.clips, mel, chunk.source, console);
    Progress progress(console);
    if (mel.content_frames() > 0) info.language = transcriber.language(mel);
    output.begin(info);
    if (mel.content_frames() > 0) {
        Transcriber::Listener listener;
        listener.segment = [&](const Segment& segment) { output.segment(segment); };
        listener.progress = [&](double done) {
            progress.show(concat(chunk.source, ": ", static_cast<int>(done * 100), "%"));
        };
        text = transcriber.transcribe(mel, info.language, listener);
    }
    output.end(text, chunk.error);
    if (!chunk.error.empty()) {
        const bool named = chunk.error.starts_with(chunk.source);
        console.error(named ? chunk.error : chunk.source + ": " + chunk.error);
    }
}

void run(const Options& options, Console& console) {
    options.transcribe.check();
    options.output.check();
    require_piped_stdin("a mel stream");
    Context ctx = options.compute.context();
    if (console.verbose)
        ctx.on_stage = [&](const std::string& name, const std::string& shape, double ms) {
            console.stage(name, shape, ms);
        };
    const std::filesystem::path directory = find_model(options.model, "whisper");
    const Model model = load_model(directory, precision_of(options.compute.dtype));
    const Tokenizer tokenizer(directory, model.config.n_vocab);
    Transcriber transcriber(ctx, model, tokenizer, options.transcribe);
    TranscriptOutput output(options.output);

    ByteReader in(STDIN_FILENO, "stdin");
    RecordingReader chunks(in, "mel", "pipe it through mel first");
    std::map<std::string, MelRecording> recordings;  // those that have not ended
    while (std::optional<Chunk> chunk = chunks.next()) {
        recordings[chunk->recording].add(*chunk, model.config.n_mels);
        if (!chunk->last) continue;
        transcribe(options, transcriber, recordings[chunk->recording], *chunk, output, console);
        recordings.erase(chunk->recording);
    }
}

}  // namespace

int main(int argc, char** argv) {
    return tool_main<Options>("whisper-transcribe",
                              "Transcribes or translates the recordings of a mel stream on stdin.",
                              argc, argv, run);
}
