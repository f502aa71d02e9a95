// A Whisper model in the server's memory, and its service.
#pragma once

#include <memory>

#include "serve/audio/audio_service.h"
#include "serve/models/served_model.h"
#include "serve/models/server_thread.h"

namespace hark::serve {

class AudioServed : public ServedModel {
  public:
    AudioServed(std::unique_ptr<AudioModel> model, AudioServiceOptions options,
                std::shared_ptr<const ServerThread> thread);
    ~AudioServed() override;

    ModelKind kind() const override { return ModelKind::audio; }
    void begin() override;
    void stop() override;
    int64_t bytes() const override;
    AudioService& service() { return *service_; }

  private:
    std::unique_ptr<AudioModel> model_;
    AudioServiceOptions options_;
    std::shared_ptr<const ServerThread> thread_;
    std::unique_ptr<AudioService> service_;
};

}  // namespace hark::serve
