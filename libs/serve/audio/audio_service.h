// The recordings of one Whisper model, which share its batch, and its live sessions, which take
// turns with that.
//
//     ask()      -> Worker: audio-decode -> AudioThread: BatchTask -> AudioListener
//     ask_live() -> AudioThread: LiveTask -> LiveListener
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "serve/audio/audio_thread.h"
#include "serve/metrics.h"
#include "serve/web/web_error.h"
#include "serve/worker.h"

namespace hark::serve {

struct AudioJob;
class AudioModel;
class BatchTask;
class LiveJob;
struct Transcript;

struct AudioServiceOptions {
    std::string name;          // of the model, as requests give it
    int64_t most_waiting = 0;  // recordings that are not in the batch
    int64_t most_live = 0;     // live sessions
};

// The bytes of recordings that are decoded and have not been transcribed: an hour has 115 MB.
class DecodedBytes {
  public:
    // Waits while there are too many, unless the job is cancelled.
    void wait(const AudioJob& job);
    void add(size_t bytes);
    void remove(size_t bytes);
    void wake();  // a job is cancelled

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    size_t bytes_ = 0;
};

class AudioService {
  public:
    using Post = std::function<void(std::function<void()>)>;

    // `post` runs a function on the server's thread. The model must outlive it.
    AudioService(AudioModel& model, AudioServiceOptions options, Post post);
    // Ends what runs.
    ~AudioService();

    // Ends its threads, which have posted all that they tell then. Not while anybody asks.
    void stop();

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
    const AudioModel& model() const { return model_; }
    const AudioMetrics& metrics() const { return metrics_; }

  private:
    // On a worker: decodes the job's file, and gives it to the batch.
    void decode(const std::shared_ptr<AudioJob>& job);
    // Calls event(listener) on the server's thread, unless the job is cancelled.
    template <class Job, class Event>
    void tell(const std::shared_ptr<Job>& job, Event event);
    // Counts, and tells the last event.
    void end(const std::shared_ptr<AudioJob>& job, const std::optional<WebError>& why,
             const Transcript& transcript, double busy_seconds);

    AudioModel& model_;
    AudioServiceOptions options_;
    Post post_;
    AudioMetrics metrics_;
    std::map<const AudioJob*, std::shared_ptr<AudioJob>> jobs_;  // that have not ended
    std::map<const LiveJob*, std::shared_ptr<LiveJob>> live_;    // the same
    DecodedBytes decoded_;
    std::shared_ptr<BatchTask> batch_;
    AudioThread thread_;
    Worker decoders_;
};

}  // namespace hark::serve
