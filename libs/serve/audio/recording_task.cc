#include "serve/audio/recording_task.h"

#include <utility>

namespace hark::serve {

RecordingTask::RecordingTask(AudioModel& model, std::shared_ptr<AudioJob> job,
                             whisper::MelRecording mel,
                             std::function<void(const whisper::Segment&)> use)
    : model_(model), job_(std::move(job)), mel_(std::move(mel)), use_(std::move(use)) {}

bool RecordingTask::step() {
    try {
        if (!transcriber_) begin();
        if (!job_->is_cancelled) transcriber_->advance();
        if (!job_->is_cancelled && !transcriber_->idle()) return true;
        promise_.set_value(std::move(transcript_));
    } catch (...) {
        promise_.set_exception(std::current_exception());
    }
    return false;
}

void RecordingTask::begin() {
    transcript_.seconds = static_cast<double>(mel_.content_frames()) / 100;
    whisper::Transcriber::Listener listener;
    listener.segment = [this](const whisper::Segment& segment) {
        transcript_.segments.push_back(segment);
        use_(segment);
    };
    listener.end = [this](const whisper::Transcription& recording) {
        transcript_.text = recording.text();
        transcript_.language = recording.info.language;
    };
    transcriber_ = model_.begin(job_->options, std::move(listener));
    transcriber_->add({.source = "recording"}, "", std::move(mel_));
}

}  // namespace hark::serve
