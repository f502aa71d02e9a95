// How a language model is served.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/comm/communicator.h"
#include "kernels/runtime/backend.h"

namespace hark::serve {

struct TextModelOptions {
    ComputeOptions compute;
    int64_t max_sequences = 0;  // computed at once; 0: 16, on a GPU 256
    int64_t context = 0;        // tokens of prompt and answer; 0: as many as the model has
    int64_t cache_bytes = 0;    // of keys and values, at most; 0: of what a tool takes
    std::string chat_template;  // file, in place of the model's own; empty: none
    bool batch_invariant = false;
    Communicator* ranks = &no_other_ranks();  // the processes that compute it together
};

}  // namespace hark::serve
