// The build without libav: PCM in WAV only.
#include "audio/decoder.h"
#include "audio/wav.h"
#include "core/error.h"

namespace hark {

void load_decoders() {}

std::unique_ptr<Decoder> open_decoder(Input& input, int track, Helpers*) {
    input.require_content("audio");
    std::unique_ptr<Decoder> decoder = open_wav(input);
    require(decoder != nullptr && track == 0, input.name(),
            ": this build reads PCM in WAV files only");
    return decoder;
}

}  // namespace hark
