// DecodeStream on a GPU. A step is a CUDA graph that samples its token and stores it where the next
// step reads it, so that no step waits for the host.
#pragma once

#include "gpt/engine/decode_stream.h"
#include "gpt/engine/sequence.h"
#include "kernels/sampling/gpu_sampler.h"
#include "nn/graph_runner.h"

namespace hark::gpt {

SamplingParams sampling_params_of(const SamplerOptions& options);

// The serial number of the choice that is `by` after this one's.
uint32_t advance_serial(uint32_t serial, int64_t by = 1);
// Waits for the choice with this serial number. Its token is below 0 if all logits were NaN. Throws
// the GPU's error.
SampledToken wait_for_choice(Context& ctx, TokenRingEntry& entry, uint32_t serial);

class GpuDecodeStream : public DecodeStream {
  public:
    GpuDecodeStream(Context& ctx, const Model& model, int64_t vocabulary,
                    const SamplerOptions& options, int64_t context);
    ~GpuDecodeStream() override;

    int64_t begin(std::span<const int32_t> prompt, uint64_t seed, int64_t max_tokens,
                  bool reuse) override;
    void go_on(std::span<const float> logits, uint64_t seed, int64_t max_tokens) override;
    SampledToken next() override;
    Sequence& sequence() override { return sequence_; }

  private:
    // What the samples of a prompt's answer read.
    void prepare(std::span<const int32_t> prompt, uint64_t seed, int64_t max_tokens);
    void launch();
    void step(Context& ctx, int64_t max_keys);
    SamplerArgs call(const Tensor& logits) const;

    Context& ctx_;
    const Model& model_;
    Sequence sequence_;
    Arena memory_, host_memory_;
    SamplerArgs call_;  // without the logits
    Tensor start_, slot_;
    struct Io {};             // a step's inputs and outputs are in call_
    GraphRunner<Io> graphs_;  // by the largest number of keys
    int64_t max_tokens_ = 0, launched_ = 0, taken_ = 0, prompt_ = 0;
    uint32_t serial_ = 1;  // of the next token to take
};

}  // namespace hark::gpt
