#include "serve/models/audio_served.h"

#include <utility>

#include "serve/audio/audio_model.h"

namespace hark::serve {

AudioServed::AudioServed(std::unique_ptr<AudioModel> model, AudioServiceOptions options,
                         std::shared_ptr<const ServerThread> thread)
    : model_(std::move(model)), options_(std::move(options)), thread_(std::move(thread)) {}

AudioServed::~AudioServed() = default;

void AudioServed::begin() {
    service_ = std::make_unique<AudioService>(*model_, options_, thread_->post);
}

void AudioServed::stop() { service_->stop(); }

int64_t AudioServed::bytes() const { return model_->bytes(); }

}  // namespace hark::serve
