// Work of a GPU that is always the same, recorded once and replayed as one launch.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/context.h"

namespace hark {

// The attention of a recorded step goes over so many keys at least, then over twice as many, ...:
// of 128 a GPU makes one part.
inline int64_t keys_of_recording(int64_t longest, int64_t capacity) {
    constexpr int64_t kFewest = 128;
    const auto keys = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(longest)));
    return std::min(std::max(keys, kFewest), capacity);
}

class Captured {
  public:
    // Runs on the stream of `ctx`, a context on a GPU, with its handles. Scratch comes from an
    // arena of this work's own, so that addresses stay.
    explicit Captured(const Context& ctx);
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;

    // Launches the work, which takes scratch from the context it is given and neither allocates on
    // the GPU otherwise nor waits for it. Every call must be given the same work on the same
    // memory: the first one runs it, which shows how much scratch it takes, the second one records
    // and replays it, all others replay.
    void operator()(const std::function<void(Context&)>& work);

  private:
    Context ctx_;
    std::shared_ptr<void> recorded_;
};

}  // namespace hark
