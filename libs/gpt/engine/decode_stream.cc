#include "gpt/engine/decode_stream.h"

#include <vector>

#include "gpt/engine/gpu_decode_stream.h"

namespace hark::gpt {
namespace {

class HostDecodeStream : public DecodeStream {
  public:
    HostDecodeStream(Context& ctx, const Model& model, int64_t vocabulary,
                     const SamplerOptions& options)
        : ctx_(ctx), sequence_(ctx, model), vocabulary_(vocabulary), options_(options) {}

    void begin(std::span<const int32_t> prompt, const Random& random, int64_t) override {
        sequence_.clear();
        history_.assign(prompt.begin(), prompt.end());
        fresh_ = history_.size();
        random_ = random;
    }
    SampledToken next() override {
        const std::span<const float> logits =
            sequence_.forward_to_host(ctx_, std::span<const int32_t>(history_).last(fresh_))
                .first(static_cast<size_t>(vocabulary_));
        filtered_.assign(logits.begin(), logits.end());
        const int32_t token = sample(filtered_, history_, options_, random_);
        history_.push_back(token);
        fresh_ = 1;
        return {token, log_probability(logits, token)};
    }

  private:
    Context& ctx_;
    Sequence sequence_;
    int64_t vocabulary_;
    SamplerOptions options_;
    std::vector<int32_t> history_;
    size_t fresh_ = 0;  // last tokens of history_, not yet in sequence_
    Random random_{0};
    std::vector<float> filtered_;
};

}  // namespace

std::unique_ptr<DecodeStream> make_host_decode_stream(Context& ctx, const Model& model,
                                                      int64_t vocabulary,
                                                      const SamplerOptions& options) {
    return std::make_unique<HostDecodeStream>(ctx, model, vocabulary, options);
}

std::unique_ptr<DecodeStream> make_decode_stream(Context& ctx, const Model& model,
                                                 int64_t vocabulary,
                                                 const SamplerOptions& options) {
    // longrope computes the cache again at one step, which no recorded step does.
    if (ctx.on_cuda() && !model.config.has_longrope())
        return std::make_unique<GpuDecodeStream>(ctx, model, vocabulary, options);
    return make_host_decode_stream(ctx, model, vocabulary, options);
}

}  // namespace hark::gpt
