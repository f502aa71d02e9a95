#include "serve/audio/live_task.h"

#include <optional>
#include <utility>

#include "serve/audio/audio_model.h"

namespace hark::serve {
namespace {

struct HasLeft {};  // thrown: nobody wants the rest

MelOptions live_mel(int64_t n_mels) {
    MelOptions options;
    options.mels = std::to_string(n_mels);
    options.chunk.seconds = 1;
    return options;
}

}  // namespace

LiveTask::LiveTask(AudioModel& model, std::shared_ptr<LiveJob> job, Tell tell,
                   std::function<void()> done)
    : model_(model),
      job_(std::move(job)),
      tell_(std::move(tell)),
      done_(std::move(done)),
      output_("jsonl", {},
              [this](const std::string& line) {
                  tell_([text = line.substr(0, line.size() - 1)](LiveListener& listener) {
                      listener.line(text);
                  });
              }),
      mel_(job_->rate, "stdin", live_mel(model.n_mels())) {}  // as the pipe calls it

LiveTask::~LiveTask() {
    session_.reset();
    done_();
}

bool LiveTask::is_ready() const {
    return job_->is_cancelled || !chunks_.empty() || job_->has_news();
}

bool LiveTask::step() {
    std::optional<WebError> why;
    try {
        if (job_->is_cancelled) return false;
        transcribe();
        model_.count_scratch();
        if (!has_ended_ || !chunks_.empty()) return true;
    } catch (const HasLeft&) {
        return false;
    } catch (const std::exception& failure) {
        why = web_error_of(failure);
    }
    tell_([why](LiveListener& listener) { why ? listener.failed(*why) : listener.ended(); });
    return false;
}

void LiveTask::transcribe() {
    using whisper::LivePartial;
    using whisper::LiveSegment;
    using whisper::RecordingInfo;
    if (!session_)
        session_ = model_.begin_live(
            job_->options,
            {.partial = [this](const RecordingInfo& info,
                               const LivePartial& partial) { output_.partial(info, partial); },
             .final = [this](const RecordingInfo& info,
                             const LiveSegment& segment) { output_.final(info, segment); },
             .end = [this](const RecordingInfo& info,
                           const std::string& error) { output_.end(info, error); },
             .warn = nullptr,
             .token =
                 [this] {
                     if (job_->is_cancelled) throw HasLeft();
                 }});
    const std::optional<Chunk> chunk = next();
    if (!chunk) return;
    whisper::transcribe_chunks(*chunk,
                               {[this] { return next(); },
                                [this] {
                                    fill();
                                    return chunks_.empty();
                                }},
                               *session_);
}

std::optional<Chunk> LiveTask::next() {
    fill();
    if (chunks_.empty()) return std::nullopt;
    Chunk chunk = std::move(chunks_.front());
    chunks_.pop_front();
    return chunk;
}

// Takes the job's sound once all chunks of the last sound are used: so the job knows how much
// waits.
void LiveTask::fill() {
    if (!chunks_.empty() || has_ended_) return;
    const LiveJob::Sound sound = job_->take();
    const MelStream::Emit emit = [this](Chunk chunk) { chunks_.push_back(std::move(chunk)); };
    mel_.push(sound.bytes, emit);
    if (sound.was_full) tell_([](LiveListener& listener) { listener.has_room(); });
    if (sound.has_ended) mel_.finish(emit);
    has_ended_ = sound.has_ended;
}

}  // namespace hark::serve
