#include "serve/audio/audio_service.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/machine/cores.h"
#include "core/profile/profile.h"
#include "serve/audio/audio_job.h"
#include "serve/audio/audio_model.h"
#include "serve/audio/batch_task.h"
#include "serve/audio/live_job.h"
#include "serve/audio/live_task.h"

namespace hark::serve {
namespace {

constexpr size_t kMostDecoded = size_t{512} << 20;

// Files that are decoded at once: a long one must not keep the others waiting, and a GPU
// transcribes several short ones while one is decoded. Each may take the memory of a decoder's
// process.
int64_t decoders() { return std::clamp<int64_t>(available_cores() / 4, 2, 4); }

}  // namespace

void DecodedBytes::wait(const AudioJob& job) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return bytes_ < kMostDecoded || job.is_cancelled; });
}

void DecodedBytes::add(size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
}

void DecodedBytes::remove(size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ -= bytes;
    changed_.notify_all();
}

void DecodedBytes::wake() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
}

template <class Job, class Event>
void AudioService::tell(const std::shared_ptr<Job>& job, Event event) {
    post_([job, event = std::move(event)] {
        const auto listener = job->listener.lock();
        if (listener && !job->is_cancelled) event(*listener);
    });
}

AudioService::AudioService(AudioModel& model, AudioServiceOptions options, Post post)
    : model_(model),
      options_(std::move(options)),
      post_(std::move(post)),
      batch_(std::make_shared<BatchTask>(model)),
      decoders_(decoders()) {
    thread_.add(batch_);
}

AudioService::~AudioService() {
    for (const auto& [key, job] : jobs_) cancel(job);
    for (const auto& [key, job] : live_) job->is_cancelled = true;
}

void AudioService::stop() {
    decoders_.stop();
    thread_.stop();
}

void AudioService::ask(std::shared_ptr<AudioJob> job) {
    if (metrics_.waiting > options_.most_waiting)
        throw WebError(429, "too many recordings wait; try again later", "", "rate_limit_exceeded");
    jobs_[job.get()] = job;
    ++metrics_.waiting;
    decoders_.add([this, job = std::move(job)] { decode(job); });
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
    const auto tell_it = [this, job](std::function<void(LiveListener&)> event) {
        tell(job, std::move(event));
    };
    const auto done = [this, key = job.get()] {
        post_([this, key] {
            live_.erase(key);
            metrics_.live = std::ssize(live_);
        });
    };
    thread_.add(std::make_shared<LiveTask>(model_, std::move(job), tell_it, done));
}

void AudioService::cancel(const std::shared_ptr<AudioJob>& job) {
    job->is_cancelled = true;
    job->stop.set();
    decoded_.wake();
    thread_.wake();
}

void AudioService::decode(const std::shared_ptr<AudioJob>& job) {
    decoded_.wait(*job);
    std::optional<WebError> why;
    BatchRecording recording;
    try {
        if (job->is_cancelled) throw WebError(500, "the client has left");
        const ProfileSpan span("decode");
        recording.mel = model_.decode(*job);
    } catch (const std::exception& failure) {
        why = web_error_of(failure);
    }
    if (why) return end(job, why, {}, 0);
    const size_t bytes = recording.mel.bytes();
    decoded_.add(bytes);
    recording.job = job;
    recording.begin = [this, job] {
        post_([this, job] {
            job->has_begun = true;
            --metrics_.waiting, ++metrics_.running;
        });
    };
    recording.segment = [this, job](const whisper::Segment& segment) {
        tell(job, [segment](AudioListener& listener) { listener.segment(segment); });
    };
    recording.end = [this, job, bytes](const std::optional<WebError>& wrong,
                                       const Transcript& transcript, double busy_seconds) {
        decoded_.remove(bytes);
        end(job, wrong, transcript, busy_seconds);
    };
    batch_->add(std::move(recording));
    thread_.wake();
}

void AudioService::end(const std::shared_ptr<AudioJob>& job, const std::optional<WebError>& why,
                       const Transcript& transcript, double busy_seconds) {
    post_([this, job, has_failed = why.has_value(), seconds = transcript.seconds, busy_seconds] {
        --(job->has_begun ? metrics_.running : metrics_.waiting);
        ++(has_failed ? metrics_.failed : metrics_.finished);
        if (!has_failed) metrics_.audio_seconds += seconds;
        metrics_.busy_seconds += busy_seconds;
        jobs_.erase(job.get());
    });
    tell(job, [why, transcript](AudioListener& listener) {
        why ? listener.failed(*why) : listener.ended(transcript);
    });
}

}  // namespace hark::serve
