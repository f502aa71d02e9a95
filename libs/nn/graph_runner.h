// Steps of a decoder on a GPU, each recorded as a CUDA graph when it is first needed twice.
#pragma once

#include <array>
#include <map>
#include <memory>

#include "kernels/runtime/recorded_graph.h"

namespace hark {

// What a graph is made for: up to three sizes, which its owner chooses. Unused ones are 0.
using GraphKey = std::array<int64_t, 3>;

// Works of several sizes that never run at the same time, so that they share their scratch. `Io`:
// a size's inputs and outputs, at addresses that stay.
template <class Io>
class GraphRunner {
  public:
    // On the GPU and the stream of `ctx`.
    explicit GraphRunner(const Context& ctx) : scratch_(ctx) {}

    // The inputs and outputs of a size, made by make() at the first call.
    template <class Make>
    Io& io(const GraphKey& key, const Make& make) {
        std::unique_ptr<Size>& size = sizes_[key];
        if (!size) size = std::make_unique<Size>(make(), scratch_);
        return size->io;
    }
    // Launches work(ctx, io) of a size that io() has been called for: RecordedGraph says when it is
    // recorded and what it may do.
    template <class Work>
    void launch(const GraphKey& key, const Work& work) {
        Size& size = *sizes_.at(key);
        size.graph([&](Context& ctx) { work(ctx, size.io); });
    }

  private:
    struct Size {
        Size(Io&& io, GraphScratch& scratch) : io(std::move(io)), graph(scratch) {}
        Io io;
        RecordedGraph graph;
    };

    GraphScratch scratch_;
    std::map<GraphKey, std::unique_ptr<Size>> sizes_;
};

}  // namespace hark
