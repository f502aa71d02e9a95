// Decoding steps on a GPU that return sampled tokens only. Steps of one token per row are replayed
// as CUDA graphs. Of a row alone, decoded greedily by a small model, the next step starts before
// the host has seen this one's token: the GPU makes its inputs (NextStep).
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
    // Inputs of a step of one row.
    struct Inputs {
        int32_t token, position, length, slot, window;
        SampleRequest request;

        bool operator==(const Inputs&) const = default;
    };
    std::vector<Candidate> eager(Pass& pass, std::span<const SampleRequest> requests, int64_t k);
    // Launches the recorded step `key`.
    void launch(const GraphKey& key);
    // Waits for the token of the step of `io`, but not for the next step.
    void wait_for_result(const Io& io);
    // Whether the step after that of `io` starts before that has ended.
    bool looks_ahead(const Io& io) const;
    // The inputs of the step after a greedy one that has sampled this token.
    Inputs after(const Inputs& step, int32_t sampled) const;

    Context& ctx_;
    const Model& model_;
    Caches& caches_;
    TokenSampler sampler_;
    int32_t spare_;
    std::unique_ptr<GraphRunner<Io>> graphs_;  // by rows, k and keys
    Arena memory_, host_memory_;               // of their inputs and outputs
    int64_t turn_ = 0;                         // NextStep::turn of the step asked for last
    const Io* ahead_ = nullptr;                // of the step that has started before it was asked
    Inputs ahead_inputs_{};                    // for, and its inputs
};

}  // namespace hark::whisper
