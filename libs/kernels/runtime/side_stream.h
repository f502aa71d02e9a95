// Concurrent work: on a GPU a second stream, forked from the context's own and joined with it.
#pragma once

#include <functional>
#include <memory>

#include "core/context.h"

namespace hark {

class SideStream {
  public:
    // On the GPU of `ctx`, with a higher priority than its stream: free room goes to the side
    // stream first. On the CPU it is the context itself.
    explicit SideStream(const Context& ctx);

    // Launches `work` on the side stream, after all launches so far on the stream of `ctx`; it
    // overlaps with later ones. The context given to `work` has its own arena and none of the
    // handles that products need.
    void run(Context& ctx, const std::function<void(Context&)>& work);
    // Later launches on `ctx` start after all work of the side stream. A recording
    // (recorded_graph.h) in which the side stream has run must end joined; without such work join()
    // does nothing.
    void join(Context& ctx);

  private:
    std::shared_ptr<void> stream_;  // a GPU's
    Context side_;
    bool forked_ = false;  // has run since the last join
};

}  // namespace hark
