// The recordings of one Whisper model: one after another, on a thread of their own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "serve/audio/audio_model.h"
#include "serve/metrics.h"
#include "serve/text/worker.h"

namespace hark::serve {

struct AudioServiceOptions {
    std::string name;          // of the model, as requests give it
    int64_t most_waiting = 0;  // recordings, after the one that is transcribed
};

class AudioService {
  public:
    using Post = std::function<void(std::function<void()>)>;

    // `post` runs a function on the server's thread. The model must outlive it.
    AudioService(AudioModel& model, AudioServiceOptions options, Post post);
    // Ends what runs.
    ~AudioService();

    // The rest is for the server's thread.

    // Throws WebError 429 if too many wait.
    void check_room() const;
    // Transcribes a recording; its listener is told until the job is cancelled. Throws as
    // check_room() does.
    void ask(std::shared_ptr<AudioJob> job);
    // Nothing more is told, and the model is free of it before its next step.
    void cancel(const std::shared_ptr<AudioJob>& job);

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
    Worker worker_;
};

}  // namespace hark::serve
