#include "whisper/model/work.h"

namespace hark::whisper {

EncoderFlops encoder_flops(const Config& config) {
    const double t = static_cast<double>(config.n_audio_ctx);
    const double d = static_cast<double>(config.n_audio_state);
    const double layers = static_cast<double>(config.n_audio_layer);
    const double block = 2 * t * (4 * d * d + 2 * d * static_cast<double>(config.n_audio_mlp));
    const double convolutions =
        2 * 2 * t * 3 * static_cast<double>(config.n_mels) * d + 2 * t * 3 * d * d;
    return {layers * block + convolutions, layers * 4 * t * t * d};
}

double cross_kv_flops(const Config& config) {
    return static_cast<double>(4 * config.n_text_layer * config.n_audio_ctx * config.n_text_state *
                               config.n_text_state);
}

}  // namespace hark::whisper
