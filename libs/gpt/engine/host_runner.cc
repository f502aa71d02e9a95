// Passes whose tokens the host samples.
#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/profile/profile.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/decode_stream.h"
#include "gpt/engine/model_runner.h"
#include "kernels/batch_layout.h"
#include "kernels/runtime/parallel.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {
namespace {

class HostRunner : public ModelRunner {
  public:
    HostRunner(Context& ctx, const Model& model, KvCache& cache, int64_t vocabulary)
        : ctx_(ctx), model_(model), cache_(cache), vocabulary_(vocabulary) {}

    void launch(std::span<const PassPiece> pass) override;
    std::vector<PassResult> take_results() override { return std::exchange(results_, {}); }
    void drop_passes() override { results_.clear(); }
    int64_t most_passes() const override { return 1; }

  private:
    Context& ctx_;
    const Model& model_;
    KvCache& cache_;
    int64_t vocabulary_;
    std::vector<PassResult> results_;
};

void HostRunner::launch(std::span<const PassPiece> pass) {
    const bool is_step = std::all_of(pass.begin(), pass.end(), [](const PassPiece& piece) {
        return piece.end - piece.begin == piece.samples;
    });
    const ProfileSpan span(is_step ? "step" : "prefill");
    const Scratch scratch(ctx_);
    std::vector<int32_t> tokens, position, wanted;
    std::vector<int64_t> first;  // per result: of its rows of logits
    HostBatchLayout rows;
    for (const auto& [sequence, begin, end, samples] : pass) {
        const std::vector<int32_t>& known = sequence->tokens();
        tokens.insert(tokens.end(), known.begin() + begin,
                      known.begin() + std::min<int64_t>(end, std::ssize(known)));
        if (end > std::ssize(known))
            tokens.insert(tokens.end(), sequence->drafts.begin(), sequence->drafts.end());
        position.resize(tokens.size());
        std::iota(position.end() - (end - begin), position.end(), static_cast<int32_t>(begin));
        rows.add(sequence->slot, end - begin, end);
        if (samples == 0) continue;
        first.push_back(std::ssize(wanted));
        for (int64_t i = samples; i > 0; --i)
            wanted.push_back(static_cast<int32_t>(std::ssize(tokens) - i));
        results_.push_back({sequence, {}, {}});
    }
    const auto ids = [&](const std::vector<int32_t>& values) {
        return to_device(
            ctx_, Tensor(const_cast<int32_t*>(values.data()), Dtype::i32, {std::ssize(values)}));
    };
    if (wanted.empty()) wanted.push_back(0);  // a pass has an output
    const Tensor logits = to_host(ctx_, model_(ctx_, ids(tokens), ids(position),
                                               cache_.layouts(ctx_, rows), ids(wanted), cache_));
    parallel_for(ctx_.threads, std::ssize(results_), [&](int64_t i) {
        PassResult& result = results_[static_cast<size_t>(i)];
        const int64_t row = first[static_cast<size_t>(i)];
        const auto drafts = std::ssize(result.sequence->drafts);
        sample(result, logits.slice(row, row + 1 + drafts), vocabulary_);
    });
}

}  // namespace

void sample(PassResult& result, const Tensor& logits, int64_t vocabulary) {
    BatchSequence& sequence = *result.sequence;
    std::vector<float> filtered;
    try {
        for (int64_t row = 0; row < logits.dim(0); ++row) {
            const std::span<const float> own(logits.as<float>() + row * logits.dim(1),
                                             static_cast<size_t>(vocabulary));
            result.sampled.push_back(
                sample_token(sequence.sampler, own, sequence.request.likeliest, filtered));
            if (row + 1 == logits.dim(0)) break;
            if (result.sampled.back().token != sequence.drafts[static_cast<size_t>(row)]) break;
        }
    } catch (const std::exception& why) {  // nothing may leave a parallel loop
        result.fail(why);
    }
}

std::unique_ptr<ModelRunner> make_host_runner(Context& ctx, const Model& model, KvCache& cache,
                                              int64_t vocabulary) {
    return std::make_unique<HostRunner>(ctx, model, cache, vocabulary);
}

}  // namespace hark::gpt
