#include "serve/audio/batch_task.h"

#include <chrono>
#include <utility>

#include "serve/audio/audio_model.h"
#include "whisper/transcribe/transcribe.h"

namespace hark::serve {

BatchTask::BatchTask(AudioModel& model) : model_(model) {}
BatchTask::~BatchTask() = default;

void BatchTask::add(BatchRecording recording) {
    const std::lock_guard lock(mutex_);
    added_.push_back(std::move(recording));
}

bool BatchTask::is_ready() const {
    const std::lock_guard lock(mutex_);
    return transcriber_ || !added_.empty();
}

bool BatchTask::step() {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    try {
        if (!transcriber_) transcriber_ = model_.begin_batch();
        take_added();
        shares_ = static_cast<double>(transcriber_->recordings());
        // Live sessions do not wait until all windows have been encoded.
        transcriber_->advance(transcriber_->windows_at_once());
        end_cancelled();
        if (transcriber_->idle() && running_.empty()) transcriber_.reset();
    } catch (const std::exception& failure) {
        transcriber_.reset();
        fail_all(web_error_of(failure));
    }
    model_.count_scratch();
    busy_seconds_ += std::chrono::duration<double>(Clock::now() - begin).count();
    return true;
}

std::optional<BatchRecording> BatchTask::next_added() {
    const std::lock_guard lock(mutex_);
    if (added_.empty()) return std::nullopt;
    BatchRecording recording = std::move(added_.front());
    added_.pop_front();
    return recording;
}

void BatchTask::take_added() {
    while (transcriber_->has_room()) {
        std::optional<BatchRecording> recording = next_added();
        if (!recording) return;
        begin(std::move(*recording));
    }
}

void BatchTask::fail_all(const WebError& why) {
    while (!running_.empty()) end(running_.begin(), why);
    while (std::optional<BatchRecording> recording = next_added()) {
        running_.push_back({std::move(*recording), {}});
        end(running_.begin(), why);
    }
}

void BatchTask::begin(BatchRecording recording) {
    running_.push_back({std::move(recording), {}});
    const auto at = std::prev(running_.end());
    at->transcript.seconds = static_cast<double>(at->recording.mel.content_frames()) / 100;
    at->recording.begin();
    whisper::Transcriber::Listener listener;
    listener.segment = [at](const whisper::Segment& segment) {
        at->transcript.segments.push_back(segment);
        at->recording.segment(segment);
    };
    listener.end = [this, at](const whisper::Transcription& transcription) {
        at->transcript.text = transcription.text();
        at->transcript.language = transcription.info.language;
        end(at, std::nullopt);
    };
    listener.is_wanted = [job = at->recording.job] { return !job->is_cancelled; };
    const AudioJob& job = *at->recording.job;
    try {
        model_.check(job.options);
        transcriber_->add({.source = "recording"}, "", std::move(at->recording.mel), job.options,
                          std::move(listener));
    } catch (const WebError& why) {
        end(at, why);
    }
}

void BatchTask::end(std::list<Running>::iterator at, const std::optional<WebError>& why) {
    at->recording.end(why, at->transcript, std::exchange(busy_seconds_, 0));
    running_.erase(at);
}

void BatchTask::end_cancelled() {
    for (auto at = running_.begin(); at != running_.end();) {
        const auto next = std::next(at);
        if (at->recording.job->is_cancelled) end(at, WebError(500, "the client has left"));
        at = next;
    }
}

}  // namespace hark::serve
