#include "whisper/transcribe/transcribe_stdin.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "core/cli/ending_signal.h"
#include "core/cli/progress.h"
#include "core/machine/cores.h"
#include "core/models/models.h"
#include "core/profile/profile.h"
#include "core/profile/run_counts.h"
#include "whisper/model/model.h"
#include "whisper/output/live_output.h"
#include "whisper/transcribe/language_detection.h"
#include "whisper/transcribe/live_session.h"
#include "whisper/transcribe/recording_queue.h"
#include "whisper/transcribe/stage_times.h"
#include "whisper/transcribe/tally.h"
#include "whisper/transcribe/transcribe.h"

namespace hark::whisper {
namespace {

constexpr size_t kMostRecordingsAhead = 32;

// openai-whisper does not warn of an empty clip or one after the recording's end.
void warn_of_empty_clips(const std::vector<double>& clips, const MelRecording& mel,
                         const std::string& source, Console& console) {
    const double seconds = seconds_of(mel.content_frames());
    for (size_t i = 0; i < clips.size(); i += 2)
        if (clips[i] >= seconds)
            console.warning(concat(source, ": --clip begins at ", clips[i],
                                   " s, but the recording is only ", seconds,
                                   " s long: nothing is transcribed there"));
        else if (i + 1 < clips.size() && clips[i + 1] <= clips[i])
            console.warning(concat(source, ": --clip ends at ", clips[i + 1], " s, but begins at ",
                                   clips[i], " s: nothing is transcribed there"));
}

// Whether the recording has all that the clips ask for, though it ends early.
bool has_clips(const std::vector<double>& clips, const ReceivedRecording& recording) {
    if (clips.empty() || clips.size() % 2 == 1 || !recording.lacks_end) return false;
    return *std::max_element(clips.begin(), clips.end()) <=
           seconds_of(recording.mel.content_frames());
}

void report(const RecordingInfo& info, const std::string& error, Console& console) {
    if (error.empty()) return;
    const bool named = error.starts_with(info.source);
    console.error(named ? error : info.source + ": " + error);
}

// Adds a recording, without its sound if its files cannot be written.
void add(ReceivedRecording recording, const RunOptions& options, Transcriber& transcriber,
         TranscriptOutput& output, Tally& tally, Console& console) {
    const RecordingInfo info = {recording.source, recording.channel, "",
                                seconds_of(recording.mel.content_frames())};
    const std::string failure = output.plan(info);
    if (has_clips(options.transcribe.clips, recording)) recording.error.clear();
    if (!failure.empty())
        recording.mel = MelRecording();
    else if (recording.error.empty())
        warn_of_empty_clips(options.transcribe.clips, recording.mel, recording.source, console);
    tally.arrived(info);
    transcriber.add(info, recording.error.empty() ? failure : recording.error,
                    std::move(recording.mel));
}

// Transcribes all recordings, in order. While the transcriber is busy, only recordings that are
// already complete are added. An error of the stream is thrown after the recordings before it are
// written.
void transcribe_all(RecordingQueue& queue, const RunOptions& options, Transcriber& transcriber,
                    TranscriptOutput& output, Tally& tally, Console& console) {
    while (!queue.over() || !transcriber.idle()) {
        while (transcriber.has_room()) {
            std::optional<ReceivedRecording> one = queue.next(transcriber.idle());
            if (!one) break;
            if (queue.over()) tally.all_have_arrived();
            add(std::move(*one), options, transcriber, output, tally, console);
        }
        if (queue.over()) tally.all_have_arrived();
        transcriber.advance();
    }
    queue.check();
}

Transcriber::Listener listener_of(TranscriptOutput& output, Progress& progress, Tally& tally,
                                  StageTimes& times, Console& console) {
    Transcriber::Listener listener;
    listener.begin = [&](const RecordingInfo& info) {
        const ProfileSpan span("write");
        progress.above([&] { output.begin(info); });
    };
    listener.segment = [&](const Segment& segment) {
        const ProfileSpan span("write");
        progress.above([&] { output.segment(segment); });
    };
    listener.progress = [&](const Transcription& recording) {
        tally.show(recording.done() ? 1 : recording.progress());
    };
    listener.end = [&](const Transcription& recording) {
        const ProfileSpan span("write");
        span.follow(recording.info.source, recording.info.channel);
        std::string failure;
        progress.above([&] { failure = output.end(recording.text(), recording.error); });
        report(recording.info, failure, console);
        count_recording(!failure.empty(), recording.info.seconds);
        times.say(recording.info.source, console);
        tally.end_oldest();
    };
    return listener;
}

LiveSession::Listener listener_of(LiveOutput& output, StageTimes& times, Console& console) {
    return {
        [&](const RecordingInfo& info, const LivePartial& partial) {
            output.partial(info, partial);
        },
        [&](const RecordingInfo& info, const LiveSegment& segment) { output.final(info, segment); },
        [&](const RecordingInfo& info, const std::string& error) {
            output.end(info, error);
            report(info, error, console);
            times.say(info.source, console);
        },
        [&](const std::string& warning) { console.warning(warning); }, nullptr};
}

// Marks words by confidence only if stdout takes colours.
TextLayout text_layout(const OutputOptions& output, const Console& console) {
    return {output.text.times, output.text.confidence && console.colors(STDOUT_FILENO)};
}

// --check
void write_what_is_taken(const Config& config, const RunOptions& options) {
    ByteWriter out(STDOUT_FILENO, "stdout");
    out.write(concat("mels\t", config.n_mels, "\ntask\t", options.transcribe.task, "\n"));
    out.flush();
}

// Ctrl-C ends the sound and makes all text final.
void transcribe_live_stdin(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                           const RunOptions& options, StageTimes& times, Console& console) {
    ByteWriter out(STDOUT_FILENO, "stdout");
    LiveOutput output(options.output.formats.front(), text_layout(options.output, console),
                      [&](const std::string& line) {
                          out.write(line);
                          out.flush();
                      });
    LiveSession session(ctx, model, tokenizer, options.transcribe,
                        listener_of(output, times, console));
    if (options.check_only) return write_what_is_taken(model.config, options);
    LiveChunkQueue queue(STDIN_FILENO, "stdin");
    on_ending_signal(queue.stopper());
    transcribe_live(queue, session);
}

void check_detect(const OutputOptions& output) {
    for (const std::string& format : output.formats)
        require_usage(format == "text" || format == "jsonl",
                      "--task detect: expected --format text or jsonl, got '", format, "'");
    require_usage(output.directory.empty(),
                  "--task detect: writes to stdout; leave out --output-dir");
    require_usage(output.summary.empty(), "--task detect: leave out --summary");
}

// Detects the language of one recording after another, of incomplete ones too.
void detect_all(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                const RunOptions& options, StageTimes& times, Console& console) {
    LanguageDetector detector(ctx, model, tokenizer, options.transcribe);
    if (options.check_only) return write_what_is_taken(model.config, options);
    RecordingQueue queue(STDIN_FILENO, "stdin", model.config.n_mels, 1);
    ByteWriter out(STDOUT_FILENO, "stdout");
    while (std::optional<ReceivedRecording> one = queue.next(true)) {
        const RecordingInfo info = {one->source, one->channel, "", 0};
        const std::optional<DetectedLanguage> language = detector.detect(std::move(one->mel));
        if (language) out.write(language_line(info, *language, options.output.formats.front()));
        out.flush();
        const char* const silent = language ? "" : "no speech to detect a language in";
        report(info, one->error.empty() ? silent : one->error, console);
        times.say(one->source, console);
    }
    queue.check();
}

// --verbose: the stages' total times per recording; --trace: each stage's time too.
void time_stages(Context& ctx, StageTimes& times, Console& console) {
    if (!console.verbose && !console.tracing) return;
    ctx.on_stage = [&](const std::string& name, const std::string& shape, double ms) {
        times.add(name, ms);
        console.trace(name, shape, ms);
    };
}

// Of the recordings' reader: half of the threads, the others compute. 0 if nothing asks for speech.
int speech_threads(const RunOptions& options) {
    if (!options.transcribe.detects_speech()) return 0;
    const int64_t given = options.compute.threads;
    return static_cast<int>(std::max<int64_t>((given > 0 ? given : available_cores()) / 2, 1));
}

// Sets `windows` to the number of windows decoded at once when it is known.
void transcribe_all(const RunOptions& options, Console& console, int64_t& windows) {
    const std::unique_ptr<ModelFile> file = open_model(find_model(options.model, "whisper"));
    std::optional<RecordingQueue> queue;  // the stages before work while the model is read
    if (!options.check_only && !options.live && options.transcribe.task != "detect")
        queue.emplace(STDIN_FILENO, "stdin", file->config().n_mels, kMostRecordingsAhead,
                      speech_threads(options));
    Context ctx = options.compute.context(console);
    const auto started = std::chrono::steady_clock::now();
    const Precision precision =
        precision_of(options.compute.dtype, ctx.device, file->stored_type());
    const Model model = read_model(*file, precision, ctx.arena.source(), ctx.threads);
    std::optional<Model> draft;
    if (!options.transcribe.draft_model.empty())
        draft = load_model(find_model(options.transcribe.draft_model, "whisper"), precision,
                           ctx.arena.source(), ctx.threads);
    const Tokenizer tokenizer = options.tokenizer.empty()
                                    ? file->tokenizer()
                                    : load_vocabulary(options.tokenizer, file->config().n_vocab);
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - started;
    console.stage("model", options.model, ms.count());
    note_model(options.model, ctx.on_cuda() ? "cuda" : "cpu");
    StageTimes times;
    time_stages(ctx, times, console);
    if (options.live) return transcribe_live_stdin(ctx, model, tokenizer, options, times, console);
    if (options.transcribe.task == "detect")
        return detect_all(ctx, model, tokenizer, options, times, console);
    OutputOptions output_options = options.output;
    output_options.text = text_layout(options.output, console);
    if (options.check_only) {  // writes no file
        output_options.directory.clear();
        output_options.summary.clear();
    }
    TranscriptOutput output(output_options,
                            [&](const std::string& warning) { console.warning(warning); });
    Progress progress(console);
    Tally tally(progress);
    Transcriber transcriber(ctx, model, tokenizer, options.transcribe,
                            listener_of(output, progress, tally, times, console),
                            draft ? &*draft : nullptr);
    if (options.check_only) return write_what_is_taken(model.config, options);
    windows = transcriber.slots();
    transcribe_all(*queue, options, transcriber, output, tally, console);
    add_memory("activations", static_cast<int64_t>(ctx.arena.peak()));
}

}  // namespace

void RunOptions::flags(Flags& flags) {
    flags.section("Input");
    flags.add_name("model,m", model, "MODEL installed model by its name, or a path")
        .essential()
        .completes(Completes::model)
        .variable("HARK_WHISPER_MODEL")
        .details(
            "A path begins with /, ./, ../ or ~, or exists: a directory of Hugging Face's or "
            "CTranslate2's, OpenAI's FILE.pt, or whisper.cpp's ggml-FILE.bin");
    flags.add_name("tokenizer", tokenizer, "PATH tokenizer of a model whose file has none")
        .completes(Completes::file)
        .details(
            "multilingual.tiktoken, gpt2.tiktoken, tokenizer.json, or a directory that has "
            "tokenizer.json");
    flags.add_switch("live", live, "transcribe sound while it comes (mel --chunk 1)")
        .essential()
        .details("As jsonl: lines of what may still change, and of what is final");
    flags.add_switch("check", check_only, "check options and model, print what they take, and end")
        .details("Reads no input. A line each: mels, tab, their number; task, tab, its name.");
    flags.reject_arguments([](const std::string& files, const std::string& options) {
        return concat("reads a mel stream, not files; type: audio-decode ", files,
                      " | mel | whisper-transcribe", options, ", or: hark transcribe ", files,
                      options);
    });
    transcribe.flags(flags);
    output.flags(flags);
    compute.flags(flags);
}

void RunOptions::check() {
    output.resolve_formats(live ? "jsonl" : "text");
    if (live) {
        check_live(transcribe, output);
        transcribe.words.timestamps = true;  // live words have times
    }
    // In a run of several formats, html leaves the others as they are without it.
    const bool only_html = output.is_html() && transcribe.task != "detect";
    if (output.text.confidence || only_html) transcribe.words.timestamps = true;
    transcribe.check();
    if (transcribe.task == "detect") check_detect(output);
    output.check(transcribe.words.timestamps);
}

void transcribe_stdin(const RunOptions& options, Console& console) {
    if (options.live) watch_ending_signals();  // they may come while the model is read
    int64_t windows = 0;
    try {
        transcribe_all(options, console, windows);
    } catch (const OutOfMemory& error) {
        fail(error.what(), memory_advice(windows, windows / 2));
    }
}

}  // namespace hark::whisper
