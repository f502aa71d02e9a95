// Work beside a context's own: on a GPU a second stream, which the first forks and joins.
#pragma once

#include <functional>
#include <memory>

#include "core/context.h"

namespace hark {

class SideStream {
  public:
    // On the GPU of `ctx`, of higher priority than its stream: room that comes free goes to the
    // side first. On the CPU the side is the context itself.
    explicit SideStream(const Context& ctx);

    // Launches `work` on the side, behind all that is on the stream of `ctx` so far and beside what
    // is launched there later. The context it is given has an arena of its own and
    // none of the handles that products take.
    void run(Context& ctx, const std::function<void(Context&)>& work);
    // What is launched on `ctx` from now on begins behind all that has run on the side. A recording
    // (recorded_graph.h) in which the side has run ends joined, and one that it has not run in
    // needs no join, which then does nothing.
    void join(Context& ctx);

  private:
    std::shared_ptr<void> stream_;  // of a GPU
    Context side_;
    bool forked_ = false;  // has run since the last join
};

}  // namespace hark
