#include "gpt/engine/decode_stream.h"

#include <algorithm>
#include <vector>

#include "gpt/decoder/model.h"
#include "gpt/engine/gpu_decode_stream.h"
#include "gpt/engine/sequence.h"
#include "gpt/sampling/sampler.h"

namespace hark::gpt {
namespace {

class HostDecodeStream : public DecodeStream {
  public:
    HostDecodeStream(Context& ctx, const Model& model, int64_t vocabulary,
                     const SamplerOptions& options, int64_t context, int64_t likeliest)
        : ctx_(ctx),
          sequence_(ctx, model, {.context = context}),
          vocabulary_(vocabulary),
          likeliest_(likeliest),
          sampler_(options) {}

    int64_t begin(std::span<const int32_t> prompt, uint64_t seed, int64_t, bool reuse) override {
        if (!reuse) sequence_.clear();
        const int64_t kept = sequence_.keep_beginning_of(prompt);
        sampler_.begin(prompt, seed);
        fresh_ = prompt.size() - static_cast<size_t>(kept);
        return kept;
    }
    void go_on(std::span<const float> logits, uint64_t seed, int64_t) override {
        sampler_.begin(sequence_.tokens(), seed);
        fresh_ = 0;
        given_.assign(logits.begin(), logits.end());
    }
    SampledToken next() override {
        const std::span<const float> logits =
            fresh_ == 0
                ? given_
                : sequence_.forward_to_host(ctx_, std::span(sampler_.tokens()).last(fresh_));
        SampledToken sampled = sample_token(
            sampler_, logits.first(static_cast<size_t>(vocabulary_)), likeliest_, filtered_);
        fresh_ = 1;
        return sampled;
    }
    Sequence& sequence() override { return sequence_; }

  private:
    Context& ctx_;
    Sequence sequence_;
    int64_t vocabulary_, likeliest_;
    Sampler sampler_;
    size_t fresh_ = 0;          // last tokens of the sampler, not yet in sequence_
    std::vector<float> given_;  // the next token's logits, if fresh_ is 0
    std::vector<float> filtered_;
};

}  // namespace

SampledToken sample_token(Sampler& sampler, std::span<const float> logits, int64_t likeliest,
                          std::vector<float>& filtered) {
    filtered.assign(logits.begin(), logits.end());
    const int32_t token = sampler(filtered);
    SampledToken sampled{token, log_probability(logits, token), {}};
    if (likeliest > 0) sampled.likeliest = likeliest_tokens(logits, likeliest);
    return sampled;
}

std::unique_ptr<DecodeStream> make_host_decode_stream(Context& ctx, const Model& model,
                                                      int64_t vocabulary,
                                                      const SamplerOptions& options,
                                                      int64_t context, int64_t likeliest) {
    return std::make_unique<HostDecodeStream>(ctx, model, vocabulary, options, context, likeliest);
}

std::unique_ptr<DecodeStream> make_decode_stream(Context& ctx, const Model& model,
                                                 int64_t vocabulary, const SamplerOptions& options,
                                                 int64_t context, int64_t likeliest) {
    // longrope computes the cache again at one step, which no recorded step does.
    if (ctx.on_cuda() && !model.config.has_longrope() && options.fits_gpu() &&
        !options.constraint && likeliest == 0)
        return std::make_unique<GpuDecodeStream>(ctx, model, vocabulary, options, context);
    return make_host_decode_stream(ctx, model, vocabulary, options, context, likeliest);
}

}  // namespace hark::gpt
