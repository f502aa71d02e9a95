// Decoding steps on a GPU that return sampled tokens only. Steps of one token per row are replayed
// as CUDA graphs.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nn/graph_runner.h"
#include "whisper/transcribe/pass.h"
#include "whisper/transcribe/token_sampler.h"

namespace hark::whisper {

class GpuStep {
  public:
    // Holds references: all must outlive it. `spare` is a cache row that no sequence uses.
    GpuStep(Context& ctx, const Model& model, Caches& caches, const LogitConstraints& constraints,
            int64_t spare);
    ~GpuStep();

    // Runs the pass with one request per wanted row. Returns k candidates per row, in the rows'
    // order; missing tokens are -1. The first one is drawn above temperature 0, or is `only`.
    std::vector<Candidate> operator()(Pass& pass, std::span<const SampleRequest> requests,
                                      int64_t k);

  private:
    struct Io;
    std::vector<Candidate> eager(Pass& pass, std::span<const SampleRequest> requests, int64_t k);

    Context& ctx_;
    const Model& model_;
    Caches& caches_;
    TokenSampler sampler_;
    int32_t spare_;
    std::unique_ptr<GraphRunner<Io>> graphs_;  // by rows, k and keys
    Arena memory_, host_memory_;               // of their inputs and outputs
};

}  // namespace hark::whisper
