// What libsndfile reads and libav does not.
#pragma once

#include <memory>

#include "audio/decoder.h"

namespace hark {

// Reads a seekable input from where it stands. Returns nullptr where libsndfile refuses it too.
std::unique_ptr<Decoder> open_sndfile(Input& input);

}  // namespace hark
