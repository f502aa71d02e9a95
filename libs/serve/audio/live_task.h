// A live transcription on its model's thread.
//
//     LiveJob -> PcmMel -> LiveSession -> lines
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "audio/pcm_mel.h"
#include "serve/audio/audio_thread.h"
#include "serve/audio/live_job.h"
#include "whisper/output/live_output.h"

namespace hark::whisper {
class LiveSession;
}

namespace hark::serve {

class AudioModel;

class LiveTask : public AudioTask {
  public:
    // `tell` runs an event of the job's listener on the server's thread.
    using Tell = std::function<void(std::function<void(LiveListener&)>)>;

    // The model must outlive it. `done` is called once the model is free of it.
    LiveTask(AudioModel& model, std::shared_ptr<LiveJob> job, Tell tell,
             std::function<void()> done);
    ~LiveTask() override;

    bool is_ready() const override;
    bool step() override;

  private:
    void transcribe();
    void fill();
    std::optional<Chunk> next();

    AudioModel& model_;
    std::shared_ptr<LiveJob> job_;
    Tell tell_;
    std::function<void()> done_;
    whisper::LiveOutput output_;
    PcmMel mel_;
    std::deque<Chunk> chunks_;  // that the session does not have
    bool has_ended_ = false;    // no more chunks will come
    std::unique_ptr<whisper::LiveSession> session_;
};

}  // namespace hark::serve
