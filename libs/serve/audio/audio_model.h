// A Whisper model that is served.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/context.h"
#include "serve/audio/audio_model_options.h"
#include "serve/models/model_memory.h"
#include "whisper/model/tokenizer.h"
#include "whisper/transcribe/live_session.h"

namespace hark::whisper {
class ModelFile;
class Transcriber;
}  // namespace hark::whisper

namespace hark::serve {

struct AudioJob;

// The codes of the languages that a model with this tokenizer transcribes.
std::vector<std::string> languages_of(const whisper::Tokenizer& tokenizer);

class AudioModel {
  public:
    // What the model of that file will take on the context's device; the weights not.
    static ModelNeed cache_need(const whisper::ModelFile& file, const Precision& precision,
                                const AudioModelOptions& options, const Context& ctx);

    // Reads the model of that file. Throws Error as its readers do, and if there is no
    // audio-decode.
    AudioModel(std::unique_ptr<whisper::ModelFile> file, const AudioModelOptions& options,
               Console& console);
    ~AudioModel();

    // Decodes a recording; the audio-decode that does is ended by the job's `stop`. Throws WebError
    // 400 for a file that cannot be decoded, and for one that is too long. Any thread may call it.
    whisper::MelRecording decode(AudioJob& job) const;
    // Throws WebError 400 for options that the model does not have. Any thread may call it.
    void check(const whisper::TranscribeOptions& options) const;
    int64_t n_mels() const;
    // Any thread may call it.
    std::vector<std::string> languages() const { return languages_of(tokenizer_); }
    // Of weights, caches and scratch. Any thread may call it.
    int64_t bytes() const;

    // The rest is for the model's thread alone, with what it returns. Throws OutOfMemory.

    // For recordings that have options of their own.
    std::unique_ptr<whisper::Transcriber> begin_batch();
    // Of options that check() has passed.
    std::unique_ptr<whisper::LiveSession> begin_live(const whisper::TranscribeOptions& options,
                                                     whisper::LiveSession::Listener listener);
    // Memory that passes have taken since counts from now on.
    void count_scratch();

  private:
    AudioModelOptions options_;
    std::string decoder_;
    Context ctx_;
    std::unique_ptr<whisper::ModelFile> file_;
    std::unique_ptr<const whisper::Model> model_;
    whisper::Tokenizer tokenizer_;
    whisper::TranscribeOptions batch_;  // of the run; a recording has its own
    int64_t caches_ = 0;                // bytes
    std::atomic<int64_t> used_ = 0;     // bytes of caches and scratch
};

}  // namespace hark::serve
