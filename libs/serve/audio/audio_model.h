// A Whisper model that is served.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serve/audio/audio_job.h"
#include "whisper/model/model.h"
#include "whisper/transcribe/live_session.h"
#include "whisper/transcribe/mel_recording.h"
#include "whisper/transcribe/transcribe.h"

namespace hark::serve {

struct AudioModelOptions {
    ComputeOptions compute;
    double most_seconds = 14400;  // of a recording
};

class AudioModel {
  public:
    // Reads the model of that file. Throws Error as its readers do, and if there is no
    // audio-decode.
    AudioModel(std::unique_ptr<whisper::ModelFile> file, const AudioModelOptions& options,
               Console& console);

    // Decodes a recording; the audio-decode that does is ended by the job's `stop`. Throws WebError
    // 400 for a file that cannot be decoded, and for one that is too long. Any thread may call it.
    whisper::MelRecording decode(AudioJob& job) const;
    // Throws WebError 400 for options that the model does not have. Any thread may call it.
    void check(const whisper::TranscribeOptions& options) const;
    int64_t n_mels() const { return model_->config.n_mels; }
    // The codes of the languages that it transcribes. Any thread may call it.
    std::vector<std::string> languages() const;

    // The rest is for the model's thread alone, with what it returns. Throws OutOfMemory.

    // For recordings that have options of their own.
    std::unique_ptr<whisper::Transcriber> begin_batch();
    // Of options that check() has passed.
    std::unique_ptr<whisper::LiveSession> begin_live(const whisper::TranscribeOptions& options,
                                                     whisper::LiveSession::Listener listener);

  private:
    AudioModelOptions options_;
    std::string decoder_;
    Context ctx_;
    std::unique_ptr<whisper::ModelFile> file_;
    std::unique_ptr<const whisper::Model> model_;
    whisper::Tokenizer tokenizer_;
};

}  // namespace hark::serve
