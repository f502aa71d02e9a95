// Steps on a GPU: a step of one token is a graph that also chooses the next token and leaves it
// where the following step reads it, so that steps run one behind the other and the host only
// follows.
#pragma once

#include <map>

#include "gpt/engine/steps.h"
#include "kernels/runtime/recorded_graph.h"
#include "kernels/sampling/gpu_sampler.h"

namespace hark::gpt {

Filters filters_of(const SamplerOptions& options);

class GpuSteps : public Steps {
  public:
    GpuSteps(Context& ctx, const Model& model, int64_t vocabulary, const SamplerOptions& options);
    ~GpuSteps() override;

    void begin(std::span<const int32_t> prompt, const Random& random, int64_t most) override;
    Choice next() override;

  private:
    void launch();
    void step(Context& ctx, int64_t most_keys);
    SampleCall call(const Tensor& logits) const;
    bool arrived(uint32_t serial, Choice& choice) const;

    Context& ctx_;
    const Model& model_;
    Session session_;
    Arena memory_, host_memory_;
    SampleCall call_;  // but for the logits
    Tensor start_, slot_;
    GraphScratch scratch_;
    std::map<int64_t, RecordedGraph> captured_;  // by the keys that there are at most
    int64_t most_ = 0, launched_ = 0, taken_ = 0, prompt_ = 0;
    uint32_t serial_ = 1;  // of the next choice to be taken
};

}  // namespace hark::gpt
