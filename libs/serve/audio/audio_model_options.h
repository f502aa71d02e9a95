// How a Whisper model is served.
#pragma once

#include <cstdint>

#include "kernels/runtime/backend.h"

namespace hark::serve {

struct AudioModelOptions {
    ComputeOptions compute;
    double most_seconds = 14400;  // of a recording
    int64_t live_sessions = 4;    // at once
    int64_t cache_bytes = 0;      // of all caches, at most; 0: of as many windows as are fast
};

}  // namespace hark::serve
