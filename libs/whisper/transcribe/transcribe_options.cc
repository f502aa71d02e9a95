#include "whisper/transcribe/transcribe_options.h"

#include <cmath>
#include <sstream>

#include "core/ascii.h"
#include "core/error.h"
#include "kernels/ops.h"
#include "text/regex.h"
#include "text/utf8.h"
#include "whisper/model/languages.h"
#include "whisper/output/strings.h"
#include "whisper/transcribe/decoding.h"
#include "whisper/transcribe/transcription.h"

namespace hark::whisper {
namespace {

// The tokens of " text", as the reference encodes prompts; empty for blank text.
std::vector<int32_t> encoded(const Tokenizer& tokenizer, const std::string& text) {
    const std::string bare = strip(replace_invalid(text));
    return bare.empty() ? std::vector<int32_t>() : tokenizer.encode(" " + bare);
}

// Parses --suppress-tokens; -1 means the tokens that are not speech.
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
                      "--suppress-tokens: expected token ids, or -1 for those that are not "
                      "speech (got '",
                      part, "')");
        if (!tokenizer) continue;
        if (id >= 0) ids.push_back(static_cast<int32_t>(id));
        if (id >= 0) continue;
        const std::vector<int32_t> others = tokenizer->non_speech_tokens();
        ids.insert(ids.end(), others.begin(), others.end());
    }
    return ids;
}

// What a shell offers for --language: codes, and the names of one word in small letters.
std::vector<std::string> offered_languages() {
    std::vector<std::string> offered = {"auto"};
    for (const std::string& code : language_codes())
        for (const std::string& name : language_names(code))
            if (name.find(' ') == std::string::npos) offered.push_back(ascii_lower(name));
    return offered;
}

}  // namespace

void TranscribeOptions::flags(Flags& flags) {
    input_flags(flags);
    flags.section("Decoding");
    task_flags(flags);
    search_flags(flags);
    token_flags(flags);
    prompt_flags(flags);
    flags.section("Language detection");
    detection_flags(flags);
    flags.section("Windows");
    window_flags(flags);
    flags.section("Thresholds");
    threshold_flags(flags);
    words.flags(flags);
}

void TranscribeOptions::task_flags(Flags& flags) {
    flags.add("language,l", language, "CODE|NAME spoken language (de, German), or auto")
        .essential()
        .suggests(offered_languages())
        .details("auto uses the first 30 s of each recording");
    flags.add("task", task, {"transcribe", "translate", "detect"}, "TASK to do")
        .essential()
        .details(
            "translate writes English. detect writes each recording's language and its "
            "probability, and no text");
}

void TranscribeOptions::detection_flags(Flags& flags) {
    flags
        .add("language-windows", language_windows, "N windows of 30 s to detect the language in", 1,
             1000)
        .details(
            "The first window above --language-threshold decides, or else the language of most "
            "windows");
    flags.add("language-threshold", language_threshold,
              "P probability above which one window decides on the language", 0, 1);
    flags.add_switch("multilingual", multilingual, "detect the language of each window");
}

void TranscribeOptions::search_flags(Flags& flags) {
    flags.add("temperature", temperature, "T sampling temperature; 0: the likeliest token", 0, 100);
    flags
        .add("fallback-temperatures", fallback_temperatures,
             "T,T,... for windows that fail a threshold, in turn; or none", 0, 100)
        .details(
            "Temperatures that are not above --temperature are left out. If all fail, the last "
            "text is kept");
    flags.add("beam-size", beam_size, "N beams at temperature 0; 1: greedy", 1, 64).essential();
    flags.add("patience", patience, "F times --beam-size finished sequences end the search", 0.01,
              100);
    flags.add("length-penalty", length_penalty, "ALPHA length penalty that ranks candidates", 0, 1)
        .details("That of Wu et al. Without it, their mean log probability ranks them");
    flags.add("best-of", best_of, "N candidates sampled above temperature 0", 1, 64);
    flags.add("seed", seed, "N seed of the random numbers above temperature 0", 0, INT64_MAX);
    flags.add_name("draft-model", draft_model, "MODEL smaller model that proposes tokens")
        .completes(Completes::model)
        .details(
            "It needs the same vocabulary. The text does not change: the model keeps the tokens "
            "that it would have chosen itself");
    flags.add("draft-tokens", draft_tokens, "N tokens that the draft model proposes at once", 1,
              kFewQueries - 1);
}

void TranscribeOptions::token_flags(Flags& flags) {
    flags.add_switch("timestamps", timestamps, "predict timestamps; else a segment is a window");
    flags
        .add("max-initial-timestamp", max_initial_timestamp,
             "SECONDS latest start of a window's first segment; or none", 0, 30)
        .details("0 means none too");
    flags.add("sample-len", sample_len, "N tokens per window at most; 0: half the model's context",
              0, kMaxTextContext);
    flags
        .add("suppress-tokens", suppress_tokens,
             "ID,ID,... tokens never written; -1: brackets, notes, ...")
        .details(
            "-1 stands for all tokens that are not speech. Special tokens are never written "
            "either, unless the list is empty");
    flags.add("suppress-regex", suppress_regex, "PATTERN that matches tokens never written")
        .details("A regular expression (PCRE2) that matches a token's whole text");
    flags.add("repetition-penalty", repetition_penalty,
              "R above 1: tokens of a window's text get less likely", 0.01, 100);
    flags.add("no-repeat-ngram", no_repeat_ngram,
              "N tokens in a row never come twice in a window; 0: off", 0, 448);
}

void TranscribeOptions::prompt_flags(Flags& flags) {
    flags.add("initial-prompt,p", initial_prompt, "TEXT before the first window: names, spelling")
        .essential()
        .details("The model takes it for the text before the recording");
    flags.add_switch("carry-initial-prompt", carry_initial_prompt,
                     "put the initial prompt before each window");
    flags.add_switch("previous-text", previous_text, "prompt each window with the text before it");
    flags.add("hotwords", hotwords, "TEXT words to expect, before each window's prompt");
    flags.add("prefix", prefix, "TEXT that each window's speech begins with; not written");
}

void TranscribeOptions::input_flags(Flags& flags) {
    flags.add("clip", clips, "START,END,... seconds to transcribe, in this order", 0, 1e9)
        .essential()
        .details("A last START without END means up to the recording's end");
    flags.add_switch("vad", vad, "transcribe only speech (built-in detector)")
        .essential()
        .details("A stream that has been through the vad tool needs no flag");
}

void TranscribeOptions::window_flags(Flags& flags) {
    flags.add("windows", windows, {"sequential", "independent"}, "MODE of cutting into windows")
        .details(
            "sequential: each window begins where the last segment before it ends, as in "
            "openai-whisper. independent: recordings are cut at pauses, and windows are decoded "
            "in parallel, without the text before them");
    flags
        .add("batch-size", batch_size, "N windows decoded in parallel; 0: as memory allows", 0,
             1024)
        .details(
            "0 means up to 8 on a CPU and 32 on a GPU. Above 32 on a GPU, a window takes less "
            "memory and rounds differently");
}

void TranscribeOptions::threshold_flags(Flags& flags) {
    flags
        .add("compression-ratio-threshold", thresholds.compression_ratio,
             "RATIO of zlib above which a window's text fails; or none", 0, 1e9)
        .details("Such a text repeats itself");
    flags
        .add("logprob-threshold", thresholds.logprob,
             "P mean log probability per token below which a text fails", -1e9, 0)
        .details("`none`: no text fails by it");
    flags
        .add("no-speech-threshold", thresholds.no_speech,
             "P of no speech above which a failed window is silence", 0, 1)
        .details(
            "It holds for windows that fail --logprob-threshold; they are not decoded again. "
            "`none`: no window is silence");
    flags
        .add("max-repeats", thresholds.max_repeats,
             "N times in a row that the same words may come; 0: any", 0, 224)
        .details("A window that repeats more fails, and its text prompts no other window");
}

std::vector<double> TranscribeOptions::temperatures() const {
    std::vector<double> all = {temperature};
    for (const double fallback : fallback_temperatures)
        if (fallback > temperature) all.push_back(fallback);
    return all;
}

bool TranscribeOptions::samples() const {
    const std::vector<double> all = temperatures();
    return *std::max_element(all.begin(), all.end()) > 0;
}

void TranscribeOptions::check() const {
    const TranscribeOptions standard;
    check_search(standard);
    require_usage(!carry_initial_prompt || !strip(initial_prompt).empty(),
                  "--carry-initial-prompt: needs --initial-prompt");
    require_usage(language_threshold == standard.language_threshold || language_windows > 1,
                  "--language-threshold: needs --language-windows above 1");
    require_usage(!multilingual || language == "auto", "--multilingual: contradicts --language ",
                  language, "; leave one out");
    require_usage(language_windows == 1 || language == "auto",
                  "--language-windows: contradicts --language ", language, "; leave one out");
    const bool independent = windows == "independent";
    require_usage(!independent || !carry_initial_prompt,
                  "--carry-initial-prompt: has no effect with --windows independent, where each "
                  "window begins with the initial prompt");
    require_usage(!independent || previous_text,
                  "--no-previous-text: has no effect with --windows independent, where windows "
                  "have no previous text");
    if (task == "detect") check_detect();
    words.check();
    parse_suppressed(suppress_tokens, nullptr);
    try {
        const Regex compiles(suppress_regex);
    } catch (const Error& error) {
        throw UsageError(concat("--suppress-regex: ", error.what()));
    }
}

void TranscribeOptions::check_search(const TranscribeOptions& standard) const {
    require_usage(samples() || best_of == standard.best_of,
                  "--best-of: samples above temperature 0, and no temperature is");
    require_usage(samples() || seed == 0,
                  "--seed: has an effect above temperature 0, and no temperature is");
    require_usage(!length_penalty || beam_size > 1 || samples(),
                  "--length-penalty: needs --beam-size above 1 or a temperature above 0");
    require_usage(patience == 1 || beam_size > 1, "--patience: needs --beam-size above 1");
    require_usage(std::nearbyint(static_cast<double>(beam_size) * patience) >= 1,
                  "--patience: ", patience, " is too low for --beam-size ", beam_size);
    require_usage(beam_size == 1 || temperature == 0, "--beam-size: needs --temperature 0 (got ",
                  temperature, ")");
    require_usage(draft_tokens == standard.draft_tokens || !draft_model.empty(),
                  "--draft-tokens: needs --draft-model");
    require_usage(draft_model.empty() || (beam_size == 1 && temperature == 0),
                  "--draft-model: needs --beam-size 1 and --temperature 0");
}

void TranscribeOptions::check_detect() const {
    const auto excludes = [](bool given, const char* flag) {
        require_usage(!given, "--task detect: writes no text; leave out ", flag);
    };
    require_usage(language == "auto", "--task detect: contradicts --language ", language,
                  "; leave one out");
    excludes(multilingual, "--multilingual");
    excludes(words.timestamps, "--word-timestamps");
    excludes(!draft_model.empty(), "--draft-model");
}

TranscriptionPlan TranscribeOptions::plan(MelRecording& mel, LoopOptions loop) const {
    TranscriptionPlan plan;
    const bool independent = windows == "independent";
    std::optional<std::vector<Region>> speech = mel.speech();
    const bool only_speech = vad || speech;
    if (mel.content_frames() == 0) return plan;
    if (!speech && detects_speech()) speech = mel.detected_speech();
    std::vector<FrameRange> ranges;
    std::vector<int64_t> pauses;
    if (only_speech) {
        plan.speech.emplace(clipped(*speech, clips), mel.content_frames());
        mel = mel.only(plan.speech->pieces());
        loop.clips.clear();
        ranges = {{0, mel.content_frames()}};
        for (const TimeMap::Piece& piece : plan.speech->pieces())
            pauses.push_back(piece.packed / TimeMap::kFrame);
    } else if (independent) {
        for (const Region& clip :
             clipped(std::vector<Region>{{0, mel.content_frames() * TimeMap::kFrame}}, clips))
            ranges.push_back({clip.begin / TimeMap::kFrame, clip.end / TimeMap::kFrame});
        pauses = pauses_between(*speech);
    }
    if (independent) plan.windows = independent_windows(ranges, pauses);
    plan.loop = std::move(loop);
    return plan;
}

DecodingOptions TranscribeOptions::decoding(const Tokenizer& tokenizer) const {
    DecodingOptions options;
    options.timestamps = timestamps;
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
    options.previous_text = previous_text;
    options.clips = clips;
    options.thresholds = thresholds;
    options.hallucination_silence = words.hallucination_silence;
    return options;
}

std::string TranscribeOptions::language_for(const Tokenizer& tokenizer,
                                            const LoopOptions& loop) const {
    const size_t fixed =
        loop.hotwords.size() + (loop.carry_initial_prompt ? loop.initial_prompt.size() : 0);
    require(loop.hotwords.empty() || fixed <= loop.max_prompt, "--hotwords",
            loop.carry_initial_prompt ? " and the carried --initial-prompt" : "",
            ": too long for a prompt (got ", fixed, " tokens, expected ", loop.max_prompt,
            " at most)");
    const bool known = tokenizer.special().multilingual;
    const std::string code = language_code(language);
    require(known || code == "auto" || code == "en", "--language ", language,
            ": this model is English-only");
    require(known || task != "translate", "this model is English-only: it cannot translate");
    require(known || (!multilingual && language_windows == 1 && task != "detect"),
            "this model is English-only: it cannot detect languages");
    if (!known) return "en";
    if (code == "auto") return "";
    tokenizer.language_token(code);
    return code;
}

Task TranscribeOptions::window_task() const {
    return task == "translate" ? Task::translate : Task::transcribe;
}

uint64_t TranscribeOptions::window_seed(int64_t seek, size_t attempt) const {
    Random seeds(static_cast<uint64_t>(seed));
    return seeds.next() + static_cast<uint64_t>(seek) * 64 + attempt;
}

}  // namespace hark::whisper
