// Work of a GPU that is always the same, recorded once and replayed as one launch.
#pragma once

#include <functional>
#include <memory>

#include "core/context.h"

namespace hark {

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
