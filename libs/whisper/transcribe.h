// A recording from its log-mel spectrogram to its segments.
// Source: openai/whisper transcribe.py.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/cli.h"
#include "whisper/decoding.h"
#include "whisper/mel_recording.h"
#include "whisper/window_loop.h"

namespace hark::whisper {

struct TranscribeOptions {
    std::string task = "transcribe";
    std::string language = "auto";
    std::vector<double> temperature = {0, 0.2, 0.4, 0.6, 0.8, 1};
    int64_t best_of = 5;
    int64_t seed = 0;
    bool no_timestamps = false;
    std::vector<double> clips;
    std::string initial_prompt;
    bool carry_initial_prompt = false;
    bool no_previous_text = false;
    Thresholds thresholds;

    void flags(Flags& flags);
    void check() const;  // throws UsageError
};

// One attempt at a window: what came out, and why it was refused if it was.
struct Attempt {
    int64_t seek = 0;
    DecodingResult result;
    Rejection rejection = Rejection::none;
};

class Transcriber {
  public:
    // Holds references: context, model and tokenizer must outlive it.
    Transcriber(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                const TranscribeOptions& options);

    // The language that the options name or the model hears in the first 30 s.
    std::string language(const MelRecording& mel);

    struct Listener {
        std::function<void(const Segment&)> segment;  // one with text, in order
        std::function<void(double done)> progress;    // fraction of the recording
        std::function<void(const Attempt&)> attempt;  // every decoding, refused ones too
    };
    // Returns the text of the whole recording.
    std::string transcribe(const MelRecording& mel, const std::string& language,
                           const Listener& listener);

  private:
    DecodingResult decode_with_fallback(const WindowLoop::Window& window,
                                        const std::string& language, const Listener& listener);

    Context& ctx_;
    const Model& model_;
    const Tokenizer& tokenizer_;
    TranscribeOptions options_;
    WindowDecoder decoder_;
};

}  // namespace hark::whisper
