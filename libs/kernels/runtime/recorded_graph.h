// GPU work that is always the same: recorded once, then replayed as one launch.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/context.h"

namespace hark {

// Number of keys that the attention of a recorded step covers: at least 128, then twice as many,
// ... A GPU makes one part of 128 keys.
inline int64_t graph_bucket(int64_t longest, int64_t capacity) {
    constexpr int64_t kFewest = 128;
    const auto keys = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(longest)));
    return std::min(std::max(keys, kFewest), capacity);
}

// Scratch of recorded works that never run at the same time: as large as the largest of them needs.
class GraphScratch {
  public:
    // On the GPU and the stream of `ctx`, with its handles.
    explicit GraphScratch(const Context& ctx);
    GraphScratch(const GraphScratch&) = delete;
    GraphScratch& operator=(const GraphScratch&) = delete;

    Context& context() { return ctx_; }
    const Context& context() const { return ctx_; }
    // The scratch's address; call it while no work takes scratch. If a work has outgrown the
    // scratch, it waits for the GPU and allocates the scratch again as one block.
    const void* begin();
    size_t capacity() const { return ctx_.arena.capacity(); }

  private:
    Context ctx_;
};

class RecordedGraph {
  public:
    // Keeps the reference.
    explicit RecordedGraph(GraphScratch& scratch) : scratch_(scratch) {}
    RecordedGraph(const RecordedGraph&) = delete;
    RecordedGraph& operator=(const RecordedGraph&) = delete;

    // Launches the work. The work takes scratch from the context that it is given; it neither
    // allocates on the GPU otherwise nor synchronises. Every call needs the same work on the same
    // memory. The first call runs it and so measures its scratch, the second records and replays
    // it, the others replay it. After a move of the scratch it is recorded again.
    void operator()(const std::function<void(Context&)>& work);

  private:
    GraphScratch& scratch_;
    bool has_run_ = false;
    // The scratch's address when the work was recorded.
    const void* begin_ = nullptr;
    size_t capacity_ = 0;
    std::shared_ptr<void> recorded_;
};

}  // namespace hark
