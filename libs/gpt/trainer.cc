#include "gpt/trainer.h"

#include <cmath>
#include <numeric>

#include "core/error.h"

namespace hark::gpt {
namespace {

// The sum of f32 losses, in their order.
double sum_of(const Tensor& losses) {
    const float* values = losses.as<float>();
    return std::accumulate(values, values + losses.size(), 0.0);
}

}  // namespace

void BatchRows::add(std::span<const int32_t> window) {
    for (size_t i = 0; i + 1 < window.size(); ++i) {
        if (separator_ >= 0 && window[i] == separator_) rows_.end_sequence();
        rows_.push(window[i], window[i + 1]);
    }
    rows_.end_sequence();
}

Trainer::Trainer(Context& ctx, const Config& config, const TrainOptions& options, int32_t separator)
    : ctx_(ctx),
      config_(config),
      options_(options),
      layout_(config),
      memory_(ctx.arena.source()),
      rows_(separator),
      window_(static_cast<size_t>(options.length + 1)) {
    for (Tensor* all : {&parameters_, &gradients_, &m_, &v_}) {
        *all = memory_.tensor(Dtype::f32, {layout_.size()});
        set_zero(ctx, *all);
    }
    weights_ = layout_.views(parameters_);
    d_weights_ = layout_.views(gradients_);
    moments_ = layout_.views(m_);
}

StepResult Trainer::step(int64_t step, const TrainingOrder& order) {
    const Arena::Scope scope(ctx_.arena);
    const OptimizerOptions& o = options_.optimizer;
    const int64_t rows = options_.batch * options_.length;
    const auto targets = static_cast<float>(rows * options_.accumulate);
    Tensor losses = ctx_.arena.tensor(Dtype::f32, {rows});
    Tensor clip = ctx_.arena.tensor(Dtype::f32, {2});
    set_zero(ctx_, gradients_);
    StepResult result;
    auto next = static_cast<uint64_t>((step - 1) * options_.sequences_a_step());
    for (int64_t part = 0; part < options_.accumulate; ++part) {
        rows_.clear();
        for (int64_t i = 0; i < options_.batch; ++i) {
            order.copy(next++, window_);
            rows_.add(window_);
        }
        compute_gradients(ctx_, config_, weights_, d_weights_, rows_.view(),
                          options_.recompute_level(), 1 / targets, losses);
        result.loss += sum_of(losses) / targets;
    }
    clip_by_norm(ctx_, clip, gradients_, static_cast<float>(o.clip));
    result.norm = clip.as<float>()[0];
    result.rate = o.rate_of(step, options_.steps);
    require(
        std::isfinite(result.loss) && std::isfinite(result.norm), "step ", step,
        ": expected a finite loss, found ", result.loss, " and gradients of norm ", result.norm,
        "; begin again from a checkpoint by --model, with a smaller --rate, a longer --warmup or "
        "--skip-outliers, and another --out");
    const double most = o.skip_outliers;
    const double loss = outliers_.losses.add(result.loss), norm = outliers_.norms.add(result.norm);
    result.skipped = most > 0 && (loss > most || norm > most);
    if (!result.skipped) update(clip, step, static_cast<float>(result.rate));
    return result;
}

void Trainer::update(Tensor clip, int64_t step, float rate) {
    const OptimizerOptions& o = options_.optimizer;
    const AdamW with = {.rate = rate,
                        .beta1 = static_cast<float>(o.beta1),
                        .beta2 = static_cast<float>(o.beta2),
                        .eps = static_cast<float>(o.epsilon),
                        .decay = static_cast<float>(o.weight_decay),
                        .step = step};
    const auto adamw_of = [&](int64_t begin, int64_t end, int64_t decayed) {
        adamw(ctx_, parameters_.slice(begin, end), m_.slice(begin, end), v_.slice(begin, end),
              gradients_.slice(begin, end), clip, decayed, with);
    };
    if (o.optimizer == "adamw") return adamw_of(0, layout_.size(), layout_.decayed());
    adamw_of(0, layout_.tables(), layout_.tables());
    adamw_of(layout_.decayed(), layout_.size(), 0);
    const Muon muon_with = {.rate = rate,
                            .momentum = static_cast<float>(o.muon_momentum),
                            .decay = static_cast<float>(o.weight_decay)};
    const auto muon_of = [&](Tensor p, Tensor m, Tensor g) {
        muon(ctx_, p, m, g, clip, muon_with);
    };
    const int64_t c = config_.n_embd;
    for (size_t i = 0; i < weights_.h.size(); ++i) {
        const BlockTensors &w = weights_.h[i], &g = d_weights_.h[i], &m = moments_.h[i];
        for (int64_t part = 0; part < 3; ++part) {  // queries, keys and values each by itself
            const int64_t begin = part * c, end = begin + c;
            muon_of(w.attn_weight.slice(begin, end), m.attn_weight.slice(begin, end),
                    g.attn_weight.slice(begin, end));
        }
        muon_of(w.proj_weight, m.proj_weight, g.proj_weight);
        muon_of(w.fc_weight, m.fc_weight, g.fc_weight);
        muon_of(w.out_weight, m.out_weight, g.out_weight);
    }
}

double Trainer::validate(const TokenWindows& windows, int64_t tokens) {
    const auto whole = static_cast<uint64_t>(std::max<int64_t>(1, tokens / options_.length));
    const uint64_t count = std::min(whole, windows.size());
    double sum = 0;
    for (uint64_t begin = 0; begin < count; begin += static_cast<uint64_t>(options_.batch)) {
        const Arena::Scope scope(ctx_.arena);
        const uint64_t end = std::min(count, begin + static_cast<uint64_t>(options_.batch));
        rows_.clear();
        for (uint64_t i = begin; i < end; ++i) {
            windows.copy(i, 0, window_);
            rows_.add(window_);
        }
        const auto rows = static_cast<int64_t>(end - begin) * options_.length;
        Tensor losses = ctx_.arena.tensor(Dtype::f32, {rows});
        compute_losses(ctx_, config_, weights_, rows_.view(), losses);
        sum += sum_of(losses);
    }
    return sum / static_cast<double>(count * static_cast<uint64_t>(options_.length));
}

double Trainer::flops_a_step() const {
    const auto layers = static_cast<double>(config_.n_layer);
    const auto c = static_cast<double>(config_.n_embd);
    const double products = layers * (4 * c * c + 2 * c * static_cast<double>(config_.n_inner)) +
                            static_cast<double>(layout_.padded_vocab()) * c;
    const auto length = static_cast<double>(options_.length);
    return (6 * products + 6 * layers * c * length) * length *
           static_cast<double>(options_.sequences_a_step());
}

}  // namespace hark::gpt
