#include "whisper/transcribe_options.h"

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "kernels/ops.h"
#include "text/regex.h"
#include "text/utf8.h"
#include "whisper/languages.h"
#include "whisper/strings.h"

namespace hark::whisper {
namespace {

// " text", as the reference encodes what stands before a window's text; nothing for blank text.
std::vector<int32_t> encoded(const Tokenizer& tokenizer, const std::string& text) {
    const std::string bare = strip(replace_invalid(text));
    return bare.empty() ? std::vector<int32_t>() : tokenizer.encode(" " + bare);
}

// "-1" stands for the tokens that are no speech, a number for itself.
std::vector<int32_t> parse_suppressed(const std::string& list, const Tokenizer* tokenizer) {
    std::vector<int32_t> ids;
    std::istringstream in(list);
    for (std::string part; std::getline(in, part, ',');) {
        size_t read = 0;
        int64_t id = -2;
        try {
            id = std::stoll(part, &read);
        } catch (const std::exception&) {
        }
        require_usage(read == part.size() && id >= -1 && id < INT32_MAX,
                      "--suppress-tokens: expected token ids, or -1 for those that are no speech, "
                      "found '",
                      part, "'");
        if (!tokenizer) continue;
        if (id >= 0) ids.push_back(static_cast<int32_t>(id));
        if (id >= 0) continue;
        const std::vector<int32_t> others = tokenizer->non_speech_tokens();
        ids.insert(ids.end(), others.begin(), others.end());
    }
    return ids;
}

}  // namespace

void TranscribeOptions::flags(Flags& flags) {
    flags.add("task", task, {"transcribe", "translate"},
              "TASK write down what is said, or its English translation");
    flags.add("language", language,
              "CODE|NAME language spoken (de, German, ...), or auto: detect it");
    flags.add("language-windows", language_windows,
              "N windows of 30 s that detection reads: the first that is sure enough decides, "
              "else most of them",
              1, 1000);
    flags.add("language-threshold", language_threshold,
              "P probability from which a window is sure of its language", 0, 1);
    flags.add_switch("multilingual", multilingual, "detect the language of every window");
    flags.add(
        "temperature", temperature,
        "T,T,... temperatures of sampling: a window that fails a threshold is decoded again at "
        "the next one",
        0, 100);
    flags.add("beam-size", beam_size, "N beams at temperature 0; 1: greedy", 1, 64);
    flags.add("patience", patience,
              "F times the beams is how many sequences must have ended before the search does",
              0.01, 100);
    flags.add("length-penalty", length_penalty,
              "ALPHA ranks candidates by the length penalty of Wu et al. (0 to 1), not by their "
              "mean log probability",
              0, 1);
    flags.add("best-of", best_of, "N candidates sampled at temperatures above 0", 1, 64);
    flags.add("seed", seed, "N seed of the random numbers used above temperature 0", 0, INT64_MAX);
    flags.add("repetition-penalty", repetition_penalty,
              "R makes tokens of a window's text so far less likely; 1: does not", 0.01, 100);
    flags.add("no-repeat-ngram", no_repeat_ngram,
              "N tokens in a row never come twice in a window; 0: they may", 0, 448);
    flags.add("suppress-tokens", suppress_tokens,
              "ID,ID,... tokens never written, special tokens too; -1 stands for all that are no "
              "speech, such as brackets and notes; empty: none, not even special tokens");
    flags.add("suppress-regex", suppress_regex,
              "PATTERN tokens whose text matches it whole are never written");
    flags.add_switch(
        "vad", vad,
        "transcribe only what is speech by the built-in detector; a stream through the "
        "vad tool says so itself");
    flags.add("windows", windows, {"sequential", "independent"},
              "MODE sequential: each window after the one before, as the reference does; "
              "independent: cut at pauses, decoded side by side, without the text before");
    flags.add_switch("no-timestamps", no_timestamps,
                     "decode without timestamp tokens: a segment is a whole window");
    flags.add(
        "clip", clips,
        "START,END,... seconds: transcribe only these parts, in this order; a last START without "
        "END goes to the recording's end",
        0, 1e9);
    flags.add("initial-prompt", initial_prompt,
              "TEXT that the model takes to come before the first window: names, spelling, style");
    flags.add_switch("carry-initial-prompt", carry_initial_prompt,
                     "put the initial prompt before every window");
    flags.add("hotwords", hotwords, "TEXT words to expect, put before every window's prompt");
    flags.add("sample-len", sample_len,
              "N tokens per window at most; 0: half of the model's context (224)", 0,
              kMaxTextContext);
    flags.add("max-initial-timestamp", max_initial_timestamp,
              "SECONDS latest start of a window's first segment; none or 0: any", 0, 30);
    flags.add("prefix", prefix, "TEXT that the speech of every window begins with; not written");
    flags.add_switch("no-previous-text", no_previous_text,
                     "do not prompt a window with the text before it");
    flags.add("compression-ratio-threshold", thresholds.compression_ratio,
              "RATIO a window whose text compresses better than this repeats itself: it has "
              "failed; none: it has not",
              0, 1e9);
    flags.add("max-repeats", thresholds.max_repeats,
              "N a window that says the same words more often than this in a row has failed, and "
              "its text prompts no other; 0: it has not",
              0, 224);
    flags.add("logprob-threshold", thresholds.logprob,
              "P a window whose mean log probability per token is below this has failed; none: it "
              "has not",
              -1e9, 0);
    flags.add("no-speech-threshold", thresholds.no_speech,
              "P a window that is below --logprob-threshold is not decoded again but taken for "
              "silence if its probability of no speech is above this; none: it is not",
              0, 1);
    words.flags(flags);
    flags.add_name(
        "draft-model", draft_model,
        "NAME smaller model with the same vocabulary that guesses tokens; the text stays the "
        "model's own");
    flags.add("draft-tokens", draft_tokens, "N tokens that the draft model guesses at a time", 1,
              kFewQueries - 1);
    flags.add("batch", batch,
              "N windows of different recordings decoded side by side; 0: as many as memory "
              "allows, up to 8, on a GPU up to 32; more than 32 there keep less of a window and "
              "sum in another order",
              0, 1024);
}

bool TranscribeOptions::samples() const {
    return *std::max_element(temperature.begin(), temperature.end()) > 0;
}

void TranscribeOptions::check() const {
    require_usage(!carry_initial_prompt || !strip(initial_prompt).empty(),
                  "--carry-initial-prompt: needs --initial-prompt");
    require_usage(samples() || best_of == TranscribeOptions().best_of,
                  "--best-of: candidates are sampled above temperature 0 only");
    require_usage(samples() || seed == 0, "--seed: nothing is drawn at temperature 0");
    require_usage(!length_penalty || beam_size > 1 || samples(),
                  "--length-penalty: ranks beams or samples, and there are none");
    require_usage(draft_tokens == TranscribeOptions().draft_tokens || !draft_model.empty(),
                  "--draft-tokens: needs --draft-model");
    require_usage(
        language_threshold == TranscribeOptions().language_threshold || language_windows > 1,
        "--language-threshold: needs --language-windows above 1");
    require_usage(patience == 1 || beam_size > 1, "--patience: needs --beam-size above 1");
    require_usage(beam_size == 1 || temperature.front() == 0,
                  "--beam-size: beams are searched at temperature 0, the first temperature is ",
                  temperature.front());
    require_usage(draft_model.empty() || (beam_size == 1 && temperature.front() == 0),
                  "--draft-model: guesses for greedy decoding only (--beam-size 1, temperature 0)");
    require_usage(!multilingual || language == "auto",
                  "--multilingual: detects the language, --language ", language, " names it");
    require_usage(language_windows == 1 || language == "auto",
                  "--language-windows: nothing is to be detected with --language ", language);
    require_usage(windows == "sequential" || !carry_initial_prompt,
                  "--windows independent: every window begins with the initial prompt, "
                  "--carry-initial-prompt says nothing more");
    require_usage(windows == "sequential" || !no_previous_text,
                  "--windows independent: takes no previous text, --no-previous-text says nothing "
                  "more");
    words.check();
    parse_suppressed(suppress_tokens, nullptr);
    try {
        const Regex compiles(suppress_regex);
    } catch (const Error& error) {
        throw UsageError(concat("--suppress-regex: ", error.what()));
    }
}

Route TranscribeOptions::route(MelRecording& mel, LoopOptions loop) const {
    Route route;
    const bool independent = windows == "independent";
    std::optional<std::vector<Region>> speech = mel.speech();
    const bool only_speech = vad || speech;
    if (mel.content_frames() == 0) return route;
    if (!speech && (vad || independent)) speech = mel.detect_speech({});
    std::vector<FrameRange> ranges;
    std::vector<int64_t> pauses;
    if (only_speech) {
        route.speech.emplace(clipped(*speech, clips), mel.content_frames());
        mel = mel.only(route.speech->pieces());
        loop.clips.clear();
        ranges = {{0, mel.content_frames()}};
        for (const TimeMap::Piece& piece : route.speech->pieces())
            pauses.push_back(piece.packed / TimeMap::kFrame);
    } else if (independent) {
        for (const Region& clip :
             clipped(std::vector<Region>{{0, mel.content_frames() * TimeMap::kFrame}}, clips))
            ranges.push_back({clip.begin / TimeMap::kFrame, clip.end / TimeMap::kFrame});
        pauses = pauses_between(*speech);
    }
    if (independent) route.windows = independent_windows(ranges, pauses);
    route.loop = std::move(loop);
    return route;
}

DecodingOptions TranscribeOptions::decoding(const Tokenizer& tokenizer) const {
    DecodingOptions options;
    options.task = task == "translate" ? Task::translate : Task::transcribe;
    options.timestamps = !no_timestamps;
    options.best_of = samples() ? best_of : 1;
    options.beam_size = beam_size;
    options.patience = patience;
    options.length_penalty = length_penalty;
    options.repetition_penalty = repetition_penalty;
    options.no_repeat_ngram = no_repeat_ngram;
    options.suppressed = parse_suppressed(suppress_tokens, &tokenizer);
    options.suppress_special = !suppress_tokens.empty();
    options.sample_len = sample_len;
    options.max_initial_timestamp = max_initial_timestamp;
    if (!suppress_regex.empty()) {
        const std::vector<int32_t> matching = tokenizer.matching_tokens(suppress_regex);
        options.suppressed.insert(options.suppressed.end(), matching.begin(), matching.end());
    }
    options.prefix = encoded(tokenizer, prefix);
    options.draft_tokens = draft_tokens;
    return options;
}

LoopOptions TranscribeOptions::loop(const Tokenizer& tokenizer, size_t max_prompt) const {
    LoopOptions options;
    options.initial_prompt = encoded(tokenizer, initial_prompt);
    options.hotwords = encoded(tokenizer, hotwords);
    options.max_prompt = max_prompt;
    options.carry_initial_prompt = carry_initial_prompt;
    options.previous_text = !no_previous_text;
    options.clips = clips;
    options.thresholds = thresholds;
    options.hallucination_silence = words.hallucination_silence;
    return options;
}

std::string TranscribeOptions::language_for(const Tokenizer& tokenizer,
                                            const LoopOptions& loop) const {
    const size_t fixed =
        loop.hotwords.size() + (loop.carry_initial_prompt ? loop.initial_prompt.size() : 0);
    require(loop.hotwords.empty() || fixed <= loop.max_prompt, "--hotwords: a prompt holds ",
            loop.max_prompt, " tokens, the hotwords ",
            loop.carry_initial_prompt ? "and the carried prompt " : "", "take ", fixed);
    const bool known = tokenizer.special().multilingual;
    const std::string code = language_code(language);
    require(known || code == "auto" || code == "en",
            "this model is English-only: it has no --language ", language);
    require(known || task == "transcribe", "this model is English-only: it cannot translate");
    require(known || (!multilingual && language_windows == 1),
            "this model is English-only: it cannot detect languages");
    if (!known) return "en";
    if (code == "auto") return "";
    tokenizer.language_token(code);
    return code;
}

uint64_t TranscribeOptions::window_seed(int64_t seek, size_t attempt) const {
    Random seeds(static_cast<uint64_t>(seed));
    return seeds.next() + static_cast<uint64_t>(seek) * 64 + attempt;
}

}  // namespace hark::whisper
