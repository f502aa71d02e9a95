#include "gpt/engine/steps.h"

#include <vector>

#include "gpt/engine/gpu_steps.h"

namespace hark::gpt {
namespace {

class HostSteps : public Steps {
  public:
    HostSteps(Context& ctx, const Model& model, int64_t vocabulary, const SamplerOptions& options)
        : ctx_(ctx), session_(ctx, model), vocabulary_(vocabulary), options_(options) {}

    void begin(std::span<const int32_t> prompt, const Random& random, int64_t) override {
        session_.clear();
        history_.assign(prompt.begin(), prompt.end());
        fresh_ = history_.size();
        random_ = random;
    }
    Choice next() override {
        const std::span<const float> logits =
            session_.feed(ctx_, std::span<const int32_t>(history_).last(fresh_))
                .first(static_cast<size_t>(vocabulary_));
        filtered_.assign(logits.begin(), logits.end());
        const int32_t token = sample(filtered_, history_, options_, random_);
        history_.push_back(token);
        fresh_ = 1;
        return {token, log_probability(logits, token)};
    }

  private:
    Context& ctx_;
    Session session_;
    int64_t vocabulary_;
    SamplerOptions options_;
    std::vector<int32_t> history_;
    size_t fresh_ = 0;  // of the history's end, not yet read
    Random random_{0};
    std::vector<float> filtered_;
};

}  // namespace

std::unique_ptr<Steps> make_host_steps(Context& ctx, const Model& model, int64_t vocabulary,
                                       const SamplerOptions& options) {
    return std::make_unique<HostSteps>(ctx, model, vocabulary, options);
}

std::unique_ptr<Steps> make_steps(Context& ctx, const Model& model, int64_t vocabulary,
                                  const SamplerOptions& options) {
    if (ctx.on_cuda() && vocabulary <= kMostGpuTokens)
        return std::make_unique<GpuSteps>(ctx, model, vocabulary, options);
    return make_host_steps(ctx, model, vocabulary, options);
}

}  // namespace hark::gpt
