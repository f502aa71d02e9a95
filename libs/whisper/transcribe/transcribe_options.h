// The options of a transcription.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/cli/cli.h"
#include "whisper/model/tokenizer.h"
#include "whisper/transcribe/window_loop.h"
#include "whisper/transcribe/words.h"

namespace hark::whisper {

struct DecodingOptions;
class MelRecording;
struct TranscriptionPlan;

struct TranscribeOptions {
    std::string task = "transcribe";
    std::string language = "auto";
    int64_t language_windows = 1;
    double language_threshold = 0.5;
    bool multilingual = false;
    double temperature = 0;
    std::vector<double> fallback_temperatures = {0.2, 0.4, 0.6, 0.8, 1};
    int64_t beam_size = 1;
    double patience = 1;
    std::optional<double> length_penalty;
    int64_t best_of = 5;
    int64_t seed = 0;
    double repetition_penalty = 1;
    int64_t no_repeat_ngram = 0;
    std::string suppress_tokens = "-1";
    int64_t sample_len = 0;
    std::optional<double> max_initial_timestamp = 1.0;  // seconds
    bool timestamps = true;
    std::vector<double> clips;
    std::string initial_prompt;
    bool carry_initial_prompt = false;
    std::string hotwords;
    std::string prefix;
    bool previous_text = true;
    Thresholds thresholds;
    WordOptions words;
    std::string draft_model;
    int64_t draft_tokens = 4;
    int64_t batch_size = 0;
    int64_t most_windows = 0;  // of a batch, if batch_size is 0; 0: as many as are fast. No flag
    bool vad = false;
    std::string windows = "sequential";
    std::string suppress_regex;

    // The first flags belong to the caller's current section.
    void flags(Flags& flags);
    void check() const;  // throws UsageError
    // The temperatures of a window's attempts, in order.
    std::vector<double> temperatures() const;
    bool samples() const;  // whether a temperature is above 0

    // Options of the decoder and of the window loop. Throw Error if the model does not support one.
    DecodingOptions decoding(const Tokenizer& tokenizer) const;
    LoopOptions loop(const Tokenizer& tokenizer, size_t max_prompt) const;
    // The code of the spoken language; "" if it must be detected.
    std::string language_for(const Tokenizer& tokenizer, const LoopOptions& loop) const;
    Task window_task() const;
    // The seed of an attempt at the window at `seek`, independent of earlier draws.
    uint64_t window_seed(int64_t seek, size_t attempt) const;
    // Whether plan() asks for the speech of a recording whose stream says nothing of it.
    bool detects_speech() const { return vad || windows == "independent"; }
    // The recording's plan. With --vad, or regions of speech in the stream, cuts `mel` down to its
    // speech.
    TranscriptionPlan plan(MelRecording& mel, LoopOptions loop) const;

  private:
    void input_flags(Flags& flags);
    void task_flags(Flags& flags);
    void detection_flags(Flags& flags);
    void search_flags(Flags& flags);
    void token_flags(Flags& flags);
    void prompt_flags(Flags& flags);
    void window_flags(Flags& flags);
    void threshold_flags(Flags& flags);
    void check_search(const TranscribeOptions& standard) const;
    void check_detect() const;
};

}  // namespace hark::whisper
