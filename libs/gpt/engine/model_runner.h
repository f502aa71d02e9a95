// Runs the engine's passes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "gpt/engine/batch_sequence.h"
#include "gpt/sampling/sampled_token.h"

namespace hark {
struct Context;
class KvCache;
struct Tensor;
}  // namespace hark

namespace hark::gpt {

struct Model;

// What a pass has sampled for one of its sequences: the next token and, as long as the drafts are
// the tokens that were sampled, those after them.
struct PassResult {
    BatchSequence* sequence = nullptr;
    std::vector<SampledToken> sampled;
    std::string error = "";  // why there are no further tokens; empty: there is one at least
    bool is_out_of_memory = false;

    void fail(const std::exception& why) {
        error = failure_text(why);
        is_out_of_memory = hark::is_out_of_memory(why);
    }
};

class ModelRunner {
  public:
    virtual ~ModelRunner() = default;
    // Computes the rows of a pass, whose blocks are in the cache.
    virtual void launch(std::span<const PassPiece> pass) = 0;
    // The samples of the oldest pass whose samples have not been taken, in the order of its pieces.
    virtual std::vector<PassResult> take_results() = 0;
    // Drops all passes whose results have not been taken, and one whose launch has failed. Throws
    // Error if the device cannot compute any more.
    virtual void drop_passes() = 0;
    // Passes that may be launched before the first one's results are taken.
    virtual int64_t most_passes() const = 0;
};

struct RunnerLimits {
    int64_t sequences = 0;  // of a pass, at most; the cache has one more
    int64_t rows = 0;       // of a pass, at most
    int64_t samples = 0;    // of a pass, at most
};

// Samples the tokens of these logits (1 + drafts, columns) on the host, or says why there are none.
// Tokens are below `vocabulary`.
void sample(PassResult& result, const Tensor& logits, int64_t vocabulary);

// Sampled by the GPU where it can. Tokens are below `vocabulary`. Holds references.
std::unique_ptr<ModelRunner> make_gpu_runner(Context& ctx, const Model& model, KvCache& cache,
                                             int64_t vocabulary, const RunnerLimits& limits);

// Sampled by the host, on any device. Tokens are below `vocabulary`. Holds references.
std::unique_ptr<ModelRunner> make_host_runner(Context& ctx, const Model& model, KvCache& cache,
                                              int64_t vocabulary);

}  // namespace hark::gpt
