// The transcription of a decoded recording on its model's thread.
#pragma once

#include <functional>
#include <future>
#include <memory>

#include "serve/audio/audio_job.h"
#include "serve/audio/audio_model.h"
#include "serve/audio/audio_thread.h"

namespace hark::serve {

class RecordingTask : public AudioTask {
  public:
    // The model must outlive it. `use` is told the recording's segments.
    RecordingTask(AudioModel& model, std::shared_ptr<AudioJob> job, whisper::MelRecording mel,
                  std::function<void(const whisper::Segment&)> use);

    // Its transcript, or the exception that ended it; incomplete if the job was cancelled.
    std::future<Transcript> transcript() { return promise_.get_future(); }

    bool is_ready() const override { return true; }
    bool step() override;

  private:
    void begin();

    AudioModel& model_;
    std::shared_ptr<AudioJob> job_;
    whisper::MelRecording mel_;
    std::function<void(const whisper::Segment&)> use_;
    std::unique_ptr<whisper::Transcriber> transcriber_;
    Transcript transcript_;
    std::promise<Transcript> promise_;
};

}  // namespace hark::serve
