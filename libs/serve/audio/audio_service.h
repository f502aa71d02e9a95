// The recordings of one Whisper model, one after another, and its live sessions, which take turns
// with them.
//
//     ask()      -> Worker: audio-decode -> AudioThread: RecordingTask -> AudioListener
//     ask_live() -> AudioThread: LiveTask -> LiveListener
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "serve/audio/audio_model.h"
#include "serve/audio/audio_thread.h"
#include "serve/audio/live_job.h"
#include "serve/metrics.h"
#include "serve/text/worker.h"

namespace hark::serve {

struct AudioServiceOptions {
    std::string name;          // of the model, as requests give it
    int64_t most_waiting = 0;  // recordings, after the one that is transcribed
    int64_t most_live = 0;     // live sessions
};

class AudioService {
  public:
    using Post = std::function<void(std::function<void()>)>;

    // `post` runs a function on the server's thread. The model must outlive it.
    AudioService(AudioModel& model, AudioServiceOptions options, Post post);
    // Ends what runs.
    ~AudioService();

    // The rest is for the server's thread.

    // Transcribes a recording; its listener is told until the job is cancelled. Throws WebError
    // 429 if too many wait.
    void ask(std::shared_ptr<AudioJob> job);
    // Nothing more is told, and the model is free of it before its next step.
    void cancel(const std::shared_ptr<AudioJob>& job);

    // Transcribes what comes; its listener is told until the job is cancelled. Throws WebError 429
    // if there are too many, and 400 for options that the model does not have.
    void ask_live(std::shared_ptr<LiveJob> job);
    // The job has new sound, has ended, or is cancelled.
    void wake() { thread_.wake(); }

    const std::string& name() const { return options_.name; }
    const AudioMetrics& metrics() const { return metrics_; }

  private:
    void run(const std::shared_ptr<AudioJob>& job);
    void tell(const std::shared_ptr<AudioJob>& job, std::function<void(AudioListener&)> event);
    // Tells the last event, and counts.
    void end(const std::shared_ptr<AudioJob>& job, double audio_seconds, double busy_seconds,
             std::function<void(AudioListener&)> event);

    AudioModel& model_;
    AudioServiceOptions options_;
    Post post_;
    AudioMetrics metrics_;
    std::map<const AudioJob*, std::shared_ptr<AudioJob>> jobs_;  // that have not ended
    std::map<const LiveJob*, std::shared_ptr<LiveJob>> live_;    // the same
    AudioThread thread_;
    Worker worker_;
};

}  // namespace hark::serve
