// Audio in formats that libsndfile reads and libav does not.
#pragma once

#include <memory>

#include "audio/decoder.h"

namespace hark {

// Reads a seekable input from its offset on. Returns nullptr if libsndfile refuses it too.
std::unique_ptr<Decoder> open_sndfile(Input& input);

}  // namespace hark
