#include "whisper/transcribe.h"

#include <algorithm>

#include "core/error.h"
#include "text/utf8.h"
#include "whisper/languages.h"

namespace hark::whisper {
namespace {

DecodingOptions decoding_options(const TranscribeOptions& options) {
    return {options.task == "translate" ? Task::translate : Task::transcribe,
            !options.no_timestamps, options.best_of};
}

}  // namespace

void TranscribeOptions::flags(Flags& flags) {
    flags.add("task", task, {"transcribe", "translate"},
              "TASK write down what is said, or its English translation");
    flags.add("language", language,
              "CODE|NAME language spoken (de, German, ...), or auto: detect it");
    flags.add(
        "temperature", temperature,
        "T,T,... temperatures of sampling: a window that fails a threshold is decoded again at "
        "the next one",
        0, 100);
    flags.add("best-of", best_of, "N candidates sampled at temperatures above 0", 1, 64);
    flags.add("seed", seed, "N seed of the random numbers used above temperature 0", 0, INT64_MAX);
    flags.add_switch("no-timestamps", no_timestamps,
                     "decode without timestamp tokens: a segment is a whole window");
    flags.add(
        "clip", clips,
        "START,END,... seconds: transcribe only these parts; a last START without END goes to "
        "the recording's end",
        0, 1e9);
    flags.add("initial-prompt", initial_prompt,
              "TEXT that the model takes to come before the first window: names, spelling, style");
    flags.add_switch("carry-initial-prompt", carry_initial_prompt,
                     "put the initial prompt before every window");
    flags.add_switch("no-previous-text", no_previous_text,
                     "do not prompt a window with the text before it");
    flags.add("compression-ratio-threshold", thresholds.compression_ratio,
              "RATIO a window whose text compresses better than this repeats itself: it has failed",
              0, 1e9);
    flags.add("logprob-threshold", thresholds.logprob,
              "P a window whose mean log probability a token is below this has failed", -1e9, 0);
    flags.add("no-speech-threshold", thresholds.no_speech,
              "P a window that is below --logprob-threshold is not decoded again but taken for "
              "silence where its probability of no speech is above this",
              0, 1);
}

void TranscribeOptions::check() const {
    for (size_t i = 1; i < clips.size(); ++i)
        require_usage(clips[i] > clips[i - 1], "--clip: expected rising times, found ", clips[i],
                      " behind ", clips[i - 1]);
    require_usage(!carry_initial_prompt || !initial_prompt.empty(),
                  "--carry-initial-prompt: needs --initial-prompt");
}

Transcriber::Transcriber(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                         const TranscribeOptions& options)
    : ctx_(ctx),
      model_(model),
      tokenizer_(tokenizer),
      options_(options),
      decoder_(ctx, model, tokenizer, decoding_options(options), 1) {
    const bool multilingual = tokenizer.special().multilingual;
    options_.language = language_code(options.language);
    require(multilingual || options_.language == "auto" || options_.language == "en",
            "the model knows English only: --language ", options.language, " cannot be had");
    require(multilingual || options.task == "transcribe",
            "the model knows English only: --task translate cannot be had");
    if (multilingual && options_.language != "auto") tokenizer.language_token(options_.language);
}

std::string Transcriber::language(const MelRecording& mel) {
    if (options_.language != "auto") return options_.language;
    if (!tokenizer_.special().multilingual) return "en";
    Arena::Scope scope(ctx_.arena);
    Tensor window = ctx_.arena.tensor(Dtype::f32, {1, kWindowFrames, model_.config.n_mels});
    mel.first_window({window.as<float>(), static_cast<size_t>(window.size())});
    decoder_.encode(window);
    const std::map<std::string, double> probabilities = decoder_.language_probabilities(0);
    return std::max_element(probabilities.begin(), probabilities.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
}

std::string Transcriber::transcribe(const MelRecording& mel, const std::string& language,
                                    const Listener& listener) {
    LoopOptions loop_options;
    if (const std::string prompt = strip(replace_invalid(options_.initial_prompt)); !prompt.empty())
        loop_options.initial_prompt = tokenizer_.encode(" " + prompt);
    loop_options.carry_initial_prompt = options_.carry_initial_prompt;
    loop_options.previous_text = !options_.no_previous_text;
    loop_options.clips = options_.clips;
    loop_options.thresholds = options_.thresholds;
    WindowLoop loop(loop_options, tokenizer_, mel.content_frames());

    while (const std::optional<WindowLoop::Window> window = loop.next()) {
        {
            Arena::Scope scope(ctx_.arena);
            Tensor frames = ctx_.arena.tensor(Dtype::f32, {1, kWindowFrames, model_.config.n_mels});
            mel.window(window->seek, window->size,
                       {frames.as<float>(), static_cast<size_t>(frames.size())});
            decoder_.encode(frames);
        }
        const DecodingResult result = decode_with_fallback(*window, language, listener);
        for (const Segment& segment : loop.accept(result))
            if (!segment.text.empty() && listener.segment) listener.segment(segment);
        if (listener.progress)
            listener.progress(static_cast<double>(loop.seek()) /
                              static_cast<double>(mel.content_frames()));
    }
    return loop.text();
}

DecodingResult Transcriber::decode_with_fallback(const WindowLoop::Window& window,
                                                 const std::string& language,
                                                 const Listener& listener) {
    Attempt attempt;
    attempt.seek = window.seek;
    for (size_t i = 0; i < options_.temperature.size(); ++i) {
        WindowTask task;
        task.prompt = window.prompt;
        task.language = language;
        task.temperature = options_.temperature[i];
        // Each window and temperature has its own random numbers, whatever was drawn before.
        Random seeds(static_cast<uint64_t>(options_.seed));
        task.seed = seeds.next() + static_cast<uint64_t>(window.seek) * 64 + i;
        attempt.result = decoder_.decode({&task, 1}).front();
        attempt.rejection = rejection(attempt.result, options_.thresholds);
        if (listener.attempt) listener.attempt(attempt);
        if (attempt.rejection == Rejection::none) break;
    }
    return attempt.result;
}

}  // namespace hark::whisper
