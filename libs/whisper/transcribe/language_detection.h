// Detects the language of recordings.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/arena.h"
#include "whisper/output/formats.h"
#include "whisper/transcribe/mel_recording.h"
#include "whisper/transcribe/transcribe_options.h"

namespace hark {
struct Context;
}

namespace hark::whisper {

enum class EncodePurpose : uint8_t;
struct Model;
class WindowDecoder;

struct DetectedLanguage {
    std::string code;
    double probability = 0;  // in the window that decided
};

// Detects the language of a recording from options.language_windows windows. The decoder's `slot`
// must be idle and is left with the last of them, encoded for `purpose`; `window` (1, 3000, n_mels)
// is overwritten. Source of the first window: openai/whisper transcribe.py; of several:
// faster-whisper 1.2.1, transcribe.py, detect_language.
DetectedLanguage detect_language(WindowDecoder& decoder, int64_t slot, const MelRecording& mel,
                                 const Tensor& window, const TranscribeOptions& options,
                                 EncodePurpose purpose);

// Detects the languages of recordings without transcribing them.
class LanguageDetector {
  public:
    // Holds references: context, model and tokenizer must outlive it. Throws Error if the model
    // knows English only.
    LanguageDetector(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                     const TranscribeOptions& options);
    ~LanguageDetector();

    // nullopt if there is no sound, or with --vad no speech.
    std::optional<DetectedLanguage> detect(MelRecording mel);

  private:
    TranscribeOptions options_;
    std::unique_ptr<WindowDecoder> decoder_;
    LoopOptions loop_options_;
    Arena memory_;
    Tensor window_;  // (1, 3000, n_mels)
};

// The line for a recording. `format`: text (code, probability and source between tabs) or jsonl.
std::string language_line(const RecordingInfo& info, const DetectedLanguage& language,
                          const std::string& format);

}  // namespace hark::whisper
