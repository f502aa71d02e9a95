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
inline int64_t graph_bucket(int64_t longest, int64_t capacity) {
    constexpr int64_t kFewest = 128;
    const auto keys = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(longest)));
    return std::min(std::max(keys, kFewest), capacity);
}

// Scratch of recorded works that are never on their way side by side, so that it is as large as the
// largest of them takes.
class GraphScratch {
  public:
    // On the GPU and the stream of `ctx`, with its handles.
    explicit GraphScratch(const Context& ctx);
    GraphScratch(const GraphScratch&) = delete;
    GraphScratch& operator=(const GraphScratch&) = delete;

    Context& context() { return ctx_; }
    const Context& context() const { return ctx_; }
    // The scratch's address, while no work is taking from it. If a work has outgrown it, it is
    // allocated anew as one block, after waiting for the GPU.
    const void* begin();
    size_t capacity() const { return ctx_.arena.capacity(); }

  private:
    Context ctx_;
};

class RecordedGraph {
  public:
    // Holds the reference.
    explicit RecordedGraph(GraphScratch& scratch) : scratch_(scratch) {}
    RecordedGraph(const RecordedGraph&) = delete;
    RecordedGraph& operator=(const RecordedGraph&) = delete;

    // Launches the work, which takes scratch from the context it is given and neither allocates on
    // the GPU otherwise nor waits for it. Every call must be given the same work on the same
    // memory: the first one runs it, which shows how much scratch it takes, the second one records
    // and replays it, all others replay; where the scratch has moved it is recorded again.
    void operator()(const std::function<void(Context&)>& work);

  private:
    GraphScratch& scratch_;
    bool has_run_ = false;
    // Of the scratch, when it was recorded.
    const void* begin_ = nullptr;
    size_t capacity_ = 0;
    std::shared_ptr<void> recorded_;
};

}  // namespace hark
