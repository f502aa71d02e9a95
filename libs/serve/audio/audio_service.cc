#include "serve/audio/audio_service.h"

#include <chrono>
#include <optional>
#include <utility>

#include "serve/audio/live_task.h"
#include "serve/audio/recording_task.h"

namespace hark::serve {

AudioService::AudioService(AudioModel& model, AudioServiceOptions options, Post post)
    : model_(model), options_(std::move(options)), post_(std::move(post)) {}

AudioService::~AudioService() {
    for (const auto& [key, job] : jobs_) {
        job->is_cancelled = true;
        job->stop.set();
    }
    for (const auto& [key, job] : live_) job->is_cancelled = true;
}

void AudioService::ask(std::shared_ptr<AudioJob> job) {
    if (std::ssize(jobs_) > options_.most_waiting)
        throw WebError(429, "too many recordings wait; try again later", "", "rate_limit_exceeded");
    jobs_[job.get()] = job;
    ++metrics_.waiting;
    worker_.add([this, job = std::move(job)] { run(job); });
}

void AudioService::ask_live(std::shared_ptr<LiveJob> job) {
    model_.check(job->options);
    if (std::ssize(live_) >= options_.most_live)
        throw WebError(
            429,
            concat("too many live sessions (at most ", options_.most_live, "); try again later"),
            "", "rate_limit_exceeded");
    live_[job.get()] = job;
    metrics_.live = std::ssize(live_);
    const auto tell = [this, job](std::function<void(LiveListener&)> event) {
        post_([job, event = std::move(event)] {
            const auto listener = job->listener.lock();
            if (listener && !job->is_cancelled) event(*listener);
        });
    };
    const auto done = [this, key = job.get()] {
        post_([this, key] {
            live_.erase(key);
            metrics_.live = std::ssize(live_);
        });
    };
    thread_.add(std::make_shared<LiveTask>(model_, std::move(job), tell, done));
}

void AudioService::cancel(const std::shared_ptr<AudioJob>& job) {
    job->is_cancelled = true;
    job->stop.set();
}

void AudioService::run(const std::shared_ptr<AudioJob>& job) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    post_([this] { --metrics_.waiting, ++metrics_.running; });
    Transcript transcript;
    std::optional<WebError> why;
    try {
        if (!job->is_cancelled) {
            const auto task = std::make_shared<RecordingTask>(
                model_, job, model_.decode(*job), [this, job](const whisper::Segment& segment) {
                    tell(job, [segment](AudioListener& listener) { listener.segment(segment); });
                });
            std::future<Transcript> result = task->transcript();
            thread_.add(task);
            transcript = result.get();
        }
    } catch (const WebError& wrong) {
        why = wrong;
    } catch (const std::exception& failure) {
        why = WebError(500, failure.what());
    }
    const double busy = std::chrono::duration<double>(Clock::now() - begin).count();
    if (why) return end(job, 0, busy, [why](AudioListener& listener) { listener.failed(*why); });
    const double seconds = transcript.seconds;
    end(job, seconds, busy, [transcript = std::move(transcript)](AudioListener& listener) {
        listener.ended(transcript);
    });
}

void AudioService::tell(const std::shared_ptr<AudioJob>& job,
                        std::function<void(AudioListener&)> event) {
    post_([job, event = std::move(event)] {
        const auto listener = job->listener.lock();
        if (listener && !job->is_cancelled) event(*listener);
    });
}

void AudioService::end(const std::shared_ptr<AudioJob>& job, double audio_seconds,
                       double busy_seconds, std::function<void(AudioListener&)> event) {
    tell(job, std::move(event));
    post_([this, job, audio_seconds, busy_seconds] {
        --metrics_.running;
        ++(audio_seconds > 0 ? metrics_.finished : metrics_.failed);
        metrics_.audio_seconds += audio_seconds;
        metrics_.busy_seconds += busy_seconds;
        jobs_.erase(job.get());
    });
}

}  // namespace hark::serve
