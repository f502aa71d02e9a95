// Runs the engine's passes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpt/batch/batch_sequence.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/decode_stream.h"

namespace hark::gpt {

// What a pass has sampled for one of its sequences.
struct PassResult {
    BatchSequence* sequence = nullptr;
    SampledToken sampled;
    std::string error;  // why there is no token; empty: there is one
};

class ModelRunner {
  public:
    virtual ~ModelRunner() = default;
    // Computes the rows of a pass, whose blocks are in the cache.
    virtual void launch(std::span<const PassPiece> pass) = 0;
    // The samples of the oldest pass whose samples have not been taken, in the order of its pieces.
    virtual std::vector<PassResult> take_results() = 0;
    // Passes that may be launched before the first one's results are taken.
    virtual int64_t most_passes() const = 0;
};

struct RunnerLimits {
    int64_t sequences = 0;  // of a pass, at most; the cache has one more
    int64_t rows = 0;       // of a pass, at most
};

// Samples the token of these logits (V) on the host, or says why there is none.
void sample(PassResult& result, std::span<const float> logits);

// Sampled by the GPU where it can. Tokens are below `vocabulary`. Holds references.
std::unique_ptr<ModelRunner> make_gpu_runner(Context& ctx, const Model& model, KvCache& cache,
                                             int64_t vocabulary, const RunnerLimits& limits);

// Sampled by the host, on any device. Tokens are below `vocabulary`. Holds references.
std::unique_ptr<ModelRunner> make_host_runner(Context& ctx, const Model& model, KvCache& cache,
                                              int64_t vocabulary);

}  // namespace hark::gpt
