// A Whisper model that is served.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serve/audio/audio_job.h"
#include "whisper/model/model.h"
#include "whisper/transcribe/mel_recording.h"

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

    // Decodes and transcribes a recording; `use` is told its segments. Returns early if the job is
    // cancelled. Throws WebError 400 for a file that cannot be decoded, that is too long, and for
    // options that the model does not have.
    Transcript transcribe(AudioJob& job, const std::function<void(const whisper::Segment&)>& use);

  private:
    whisper::MelRecording decode(AudioJob& job);

    AudioModelOptions options_;
    std::string decoder_;
    Context ctx_;
    std::unique_ptr<whisper::ModelFile> file_;
    std::unique_ptr<const whisper::Model> model_;
    whisper::Tokenizer tokenizer_;
};

}  // namespace hark::serve
