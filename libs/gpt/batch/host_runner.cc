// Passes whose tokens the host samples.
#include <numeric>
#include <utility>

#include "core/error.h"
#include "gpt/batch/model_runner.h"
#include "kernels/batch_layout.h"
#include "kernels/runtime/parallel.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {
namespace {

class HostRunner : public ModelRunner {
  public:
    HostRunner(Context& ctx, const Model& model, KvCache& cache, int64_t vocabulary)
        : ctx_(ctx), model_(model), cache_(cache), vocabulary_(static_cast<size_t>(vocabulary)) {}

    void launch(std::span<const PassPiece> pass) override;
    std::vector<PassResult> take_results() override { return std::exchange(results_, {}); }
    int64_t most_passes() const override { return 1; }

  private:
    Context& ctx_;
    const Model& model_;
    KvCache& cache_;
    size_t vocabulary_;
    std::vector<PassResult> results_;
};

void HostRunner::launch(std::span<const PassPiece> pass) {
    const Scratch scratch(ctx_);
    std::vector<int32_t> tokens, position, wanted;
    HostBatchLayout rows;
    for (const auto& [sequence, begin, end, samples] : pass) {
        tokens.insert(tokens.end(), sequence->tokens().begin() + begin,
                      sequence->tokens().begin() + end);
        position.resize(tokens.size());
        std::iota(position.end() - (end - begin), position.end(), static_cast<int32_t>(begin));
        rows.add(sequence->slot, end - begin, end);
        if (!samples) continue;
        wanted.push_back(static_cast<int32_t>(tokens.size()) - 1);
        results_.push_back({sequence, {}, {}});
    }
    const auto ids = [&](const std::vector<int32_t>& values) {
        return to_device(
            ctx_, Tensor(const_cast<int32_t*>(values.data()), Dtype::i32, {std::ssize(values)}));
    };
    if (wanted.empty()) wanted.push_back(0);  // a pass has an output
    const Tensor logits = to_host(ctx_, model_(ctx_, ids(tokens), ids(position),
                                               cache_.layouts(ctx_, rows), ids(wanted), cache_));
    const auto columns = static_cast<size_t>(logits.dim(1));
    parallel_for(ctx_.threads, std::ssize(results_), [&](int64_t i) {
        const auto at = static_cast<size_t>(i);
        sample(results_[at], std::span(logits.as<float>() + at * columns, vocabulary_));
    });
}

}  // namespace

void sample(PassResult& result, std::span<const float> logits) {
    try {
        std::vector<float> filtered;
        BatchSequence& sequence = *result.sequence;
        result.sampled =
            sample_token(sequence.sampler, logits, sequence.request.likeliest, filtered);
    } catch (const Error& why) {
        result.error = why.what();
    }
}

std::unique_ptr<ModelRunner> make_host_runner(Context& ctx, const Model& model, KvCache& cache,
                                              int64_t vocabulary) {
    return std::make_unique<HostRunner>(ctx, model, cache, vocabulary);
}

}  // namespace hark::gpt
