// Decoding steps on a GPU: only choices come back from it. Steps of one token a row are replayed
// from a CUDA graph.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/runtime/captured.h"
#include "whisper/transcribe/choose.h"
#include "whisper/transcribe/pass.h"

namespace hark::whisper {

class GpuStep {
  public:
    // Holds references: all must outlive it. `spare` is a cache row that no sequence uses.
    GpuStep(Context& ctx, const Model& model, Caches& caches, const Rules& rules, int64_t spare);
    ~GpuStep();

    // Runs the pass, with a choice for each row that it wants. Returns the k best candidates of
    // each, rows one after another, a token of -1 where the rules leave fewer; of a row whose
    // temperature is above 0 the first one is drawn, of one that asks for `only` a token it is
    // that.
    std::vector<Candidate> operator()(Pass& pass, std::span<const RowChoice> choices, int64_t k);

  private:
    struct Graph;
    std::vector<Candidate> eager(Pass& pass, std::span<const RowChoice> choices, int64_t k);

    Context& ctx_;
    const Model& model_;
    Caches& caches_;
    Chooser chooser_;
    int32_t spare_;
    CaptureScratch scratch_;
    Arena memory_, host_memory_;                                       // of the graphs
    std::map<std::array<int64_t, 3>, std::unique_ptr<Graph>> graphs_;  // by rows, k and keys
};

}  // namespace hark::whisper
