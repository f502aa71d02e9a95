#include "gpt/trainer.h"

#include <cmath>
#include <numeric>

#include "core/error.h"
#include "kernels/transfer.h"

namespace hark::gpt {
namespace {

// The sum of f32 losses, in their order.
double sum_of(const Tensor& losses) {
    const float* values = losses.as<float>();
    return std::accumulate(values, values + losses.size(), 0.0);
}

}  // namespace

Trainer::Trainer(Context& ctx, const Config& config, const TrainOptions& options, Dtype matrices,
                 const TokenWindows& windows, int32_t separator)
    : ctx_(ctx),
      config_(config),
      options_(options),
      layout_(config),
      memory_(ctx.arena.source()),
      order_(windows, static_cast<uint64_t>(options.seed)),
      reader_(ctx, order_, options.batch, options.length, separator),
      val_rows_(separator) {
    for (Tensor* all : {&parameters_, &gradients_, &m_, &v_}) {
        *all = memory_.tensor(Dtype::f32, {layout_.size()});
        set_zero(ctx, *all);
    }
    if (matrices != Dtype::f32) matrices_ = memory_.tensor(matrices, {layout_.decayed()});
    weights_ = layout_.views(parameters_, matrices_);
    d_weights_ = layout_.views(gradients_);
    moments_ = layout_.views(m_);
    const int64_t rows = options.batch * options.length;
    losses_ = memory_.tensor(Dtype::f32, {rows});
    clip_ = memory_.tensor(Dtype::f32, {2});
    for (Tensor* ids : batch_.all()) *ids = memory_.tensor(Dtype::i32, {rows});
    if (ctx.on_cuda()) recorded_.emplace(ctx);
}

void Trainer::parameters_are_of(int64_t step) {
    if (matrices_)
        round_randomly(ctx_, matrices_, parameters_.slice(0, layout_.decayed()),
                       static_cast<uint64_t>(step));
}

double Trainer::add_gradients(uint64_t first) {
    Batch host = reader_.read(first);
    for (size_t i = 0; i < batch_.all().size(); ++i)
        copy_to_device(ctx_, *batch_.all()[i], *host.all()[i]);
    const auto targets = static_cast<float>(losses_.dim(0) * options_.accumulate);
    const auto compute = [&](Context& ctx) {
        compute_gradients(ctx, config_, weights_, d_weights_, batch_, options_.recompute_level(),
                          1 / targets, losses_);
    };
    if (recorded_)
        (*recorded_)(compute);
    else
        compute(ctx_);
    const Scratch scratch(ctx_);
    return sum_of(to_host(ctx_, losses_));
}

StepResult Trainer::step(int64_t step) {
    const OptimizerOptions& o = options_.optimizer;
    const auto targets = static_cast<double>(losses_.dim(0) * options_.accumulate);
    set_zero(ctx_, gradients_);
    StepResult result;
    const auto first = static_cast<uint64_t>((step - 1) * options_.sequences_a_step());
    for (int64_t part = 0; part < options_.accumulate; ++part)
        result.loss +=
            add_gradients(first + static_cast<uint64_t>(part * options_.batch)) / targets;
    clip_by_norm(ctx_, clip_, gradients_, static_cast<float>(o.clip));
    result.rate = o.rate_of(step, options_.steps);
    const bool any = o.skip_outliers <= 0;  // else the norm is to be seen before the update
    if (any) update(step, static_cast<float>(result.rate));
    const Scratch scratch(ctx_);
    result.norm = to_host(ctx_, clip_).as<float>()[0];
    require(
        std::isfinite(result.loss) && std::isfinite(result.norm), "step ", step,
        ": expected a finite loss, found ", result.loss, " and gradients of norm ", result.norm,
        "; begin again from a checkpoint by --model, with a smaller --rate, a longer --warmup or "
        "--skip-outliers, and another --out");
    const double loss = outliers_.losses.add(result.loss), norm = outliers_.norms.add(result.norm);
    result.skipped = !any && (loss > o.skip_outliers || norm > o.skip_outliers);
    if (!any && !result.skipped) update(step, static_cast<float>(result.rate));
    parameters_are_of(step);
    return result;
}

void Trainer::update(int64_t step, float rate) {
    const OptimizerOptions& o = options_.optimizer;
    const AdamW with = {.rate = rate,
                        .beta1 = static_cast<float>(o.beta1),
                        .beta2 = static_cast<float>(o.beta2),
                        .eps = static_cast<float>(o.epsilon),
                        .decay = static_cast<float>(o.weight_decay),
                        .step = step};
    const auto adamw_of = [&](int64_t begin, int64_t end, int64_t decayed) {
        adamw(ctx_, parameters_.slice(begin, end), m_.slice(begin, end), v_.slice(begin, end),
              gradients_.slice(begin, end), clip_, decayed, with);
    };
    if (o.optimizer == "adamw") return adamw_of(0, layout_.size(), layout_.decayed());
    adamw_of(0, layout_.tables(), layout_.tables());
    adamw_of(layout_.decayed(), layout_.size(), 0);
    const Muon muon_with = {.rate = rate,
                            .momentum = static_cast<float>(o.muon_momentum),
                            .decay = static_cast<float>(o.weight_decay),
                            .products = weights_.wte.dtype};
    const auto muon_of = [&](Tensor p, Tensor m, Tensor g) {
        muon(ctx_, p, m, g, clip_, muon_with);
    };
    const ModelTensors masters = layout_.views(parameters_);
    const int64_t c = config_.n_embd;
    for (size_t i = 0; i < masters.h.size(); ++i) {
        const BlockTensors &w = masters.h[i], &g = d_weights_.h[i], &m = moments_.h[i];
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
    std::vector<int32_t> window(static_cast<size_t>(options_.length + 1));
    double sum = 0;
    for (uint64_t begin = 0; begin < count; begin += static_cast<uint64_t>(options_.batch)) {
        const Scratch scratch(ctx_);
        const uint64_t end = std::min(count, begin + static_cast<uint64_t>(options_.batch));
        val_rows_.clear();
        for (uint64_t i = begin; i < end; ++i) {
            windows.copy(i, 0, window);
            val_rows_.add(window);
        }
        const auto rows = static_cast<int64_t>(end - begin) * options_.length;
        Tensor losses = ctx_.arena.tensor(Dtype::f32, {rows});
        compute_losses(ctx_, config_, weights_, to_device(ctx_, val_rows_.view()), losses);
        sum += sum_of(to_host(ctx_, losses));
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
