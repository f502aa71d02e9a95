// The decoded recordings of a model, on its thread: the windows of several are one batch.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "serve/audio/audio_job.h"
#include "serve/audio/audio_thread.h"
#include "whisper/transcribe/mel_recording.h"

namespace hark::whisper {
class Transcriber;
}

namespace hark::serve {

class AudioModel;

// A decoded recording, and who is told of it.
struct BatchRecording {
    std::shared_ptr<AudioJob> job;
    whisper::MelRecording mel;
    std::function<void()> begin;  // once, unless it ends before
    std::function<void(const whisper::Segment&)> segment;
    // Called once, last: with its transcript, or why there is none. `busy_seconds`: the model's
    // time for all recordings since the last end.
    std::function<void(const std::optional<WebError>& why, const Transcript& transcript,
                       double busy_seconds)>
        end;
};

class BatchTask : public AudioTask {
  public:
    // The model must outlive it.
    explicit BatchTask(AudioModel& model);
    ~BatchTask() override;

    // From any thread; AudioThread::wake() must follow. A job that is cancelled is dropped before
    // the next step.
    void add(BatchRecording recording);

    bool is_ready() const override;
    bool step() override;  // never the last one
    double shares() const override { return shares_; }

  private:
    // A recording that has not ended.
    struct Running {
        BatchRecording recording;
        Transcript transcript;
    };

    std::optional<BatchRecording> next_added();
    void take_added();
    void fail_all(const WebError& why);
    void begin(BatchRecording recording);
    void end(std::list<Running>::iterator at, const std::optional<WebError>& why);
    // Ends those that nobody wants any more.
    void end_cancelled();

    AudioModel& model_;
    mutable std::mutex mutex_;
    std::deque<BatchRecording> added_;
    std::list<Running> running_;
    std::unique_ptr<whisper::Transcriber> transcriber_;  // while there are recordings
    double shares_ = 1, busy_seconds_ = 0;
};

}  // namespace hark::serve
