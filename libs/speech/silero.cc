#include "speech/silero.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace hark {
namespace {

constexpr int64_t kPad = 64;  // samples mirrored after the window
constexpr int64_t kHop = 128;

void relu(Tensor x) {
    float* values = x.as<float>();
    for (int64_t i = 0; i < x.size(); ++i) values[i] = std::max(values[i], 0.0f);
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

Silero::Silero(std::shared_ptr<const SileroModel> model)
    : model_(std::move(model)),
      ctx_(std::make_unique<Context>(1)),
      pending_(SileroModel::kContext),
      hidden_(SileroModel::kHidden),
      cell_(SileroModel::kHidden) {}

void Silero::push(std::span<const float> samples, std::vector<float>& probabilities) {
    constexpr size_t kNeeded = SileroModel::kContext + SileroModel::kStep;
    while (!samples.empty()) {
        const auto piece = samples.first(std::min(samples.size(), kNeeded - pending_.size()));
        pending_.insert(pending_.end(), piece.begin(), piece.end());
        samples = samples.subspan(piece.size());
        if (pending_.size() < kNeeded) return;
        probabilities.push_back(step());
        pending_.erase(pending_.begin(), pending_.begin() + SileroModel::kStep);
    }
}

void Silero::finish(std::vector<float>& probabilities) {
    if (pending_.size() > SileroModel::kContext) {
        pending_.resize(SileroModel::kContext + SileroModel::kStep);
        probabilities.push_back(step());
    }
    pending_.assign(SileroModel::kContext, 0);
    std::fill(hidden_.begin(), hidden_.end(), 0.0f);
    std::fill(cell_.begin(), cell_.end(), 0.0f);
}

float Silero::step() {
    using M = SileroModel;
    const M& m = *model_;
    Context& ctx = *ctx_;
    const Arena::Scope scope(ctx.arena);

    std::vector<float> padded = pending_;  // 576, mirrored to 640
    for (int64_t i = 0; i < kPad; ++i) padded.push_back(pending_[pending_.size() - 2 - i]);
    Tensor windows = ctx.arena.tensor(Dtype::f32, {M::kSpectra, M::kWindow});
    for (int64_t t = 0; t < M::kSpectra; ++t)
        std::copy_n(padded.data() + t * kHop, M::kWindow, windows.as<float>() + t * M::kWindow);

    Tensor waves = ctx.arena.tensor(Dtype::f32, {M::kSpectra, 2 * M::kBins});
    linear(ctx, waves, windows, m.basis);
    Tensor x = ctx.arena.tensor(Dtype::f32, {M::kSpectra, M::kBins});
    for (int64_t t = 0; t < M::kSpectra; ++t) {
        const float* cosines = waves.as<float>() + t * 2 * M::kBins;
        const float* sines = cosines + M::kBins;
        for (int64_t i = 0; i < M::kBins; ++i)
            x.as<float>()[t * M::kBins + i] =
                std::sqrt(cosines[i] * cosines[i] + sines[i] * sines[i]);
    }

    constexpr int kStrides[] = {1, 2, 2, 1};  // (4, 129) -> (4, 128) -> (2, 64) -> (1, 64) ->
    for (size_t i = 0; i < m.convolutions.size(); ++i) {  // (1, 128)
        const int64_t rows = (x.dim(0) - 1) / kStrides[i] + 1;
        Tensor y = ctx.arena.tensor(Dtype::f32, {rows, m.convolutions[i].values.dim(0)});
        conv1d(ctx, y, x, m.convolutions[i], kStrides[i], {.bias = m.biases[i]});
        relu(y);
        x = y;
    }
    lstm(x);

    Tensor h = ctx.arena.tensor(Dtype::f32, {1, M::kHidden});
    std::copy(hidden_.begin(), hidden_.end(), h.as<float>());
    relu(h);
    Tensor y = ctx.arena.tensor(Dtype::f32, {1, 1});
    linear(ctx, y, h, m.output, {.bias = m.output_bias});
    return sigmoid(*y.as<float>());
}

// Source: Hochreiter and Schmidhuber 1997 with forget gates; the gates' order is PyTorch's.
void Silero::lstm(Tensor x) {
    constexpr int64_t n = SileroModel::kHidden;
    Context& ctx = *ctx_;
    Tensor gates = ctx.arena.tensor(Dtype::f32, {1, 4 * n});
    linear(ctx, gates, x, model_->input, {.bias = model_->input_bias});
    linear(ctx, gates, Tensor(hidden_.data(), Dtype::f32, {1, n}), model_->recurrent,
           {.bias = model_->recurrent_bias, .residual = gates});
    const float* g = gates.as<float>();
    for (int64_t i = 0; i < n; ++i) {
        cell_[i] = sigmoid(g[n + i]) * cell_[i] + sigmoid(g[i]) * std::tanh(g[2 * n + i]);
        hidden_[i] = sigmoid(g[3 * n + i]) * std::tanh(cell_[i]);
    }
}

}  // namespace hark
