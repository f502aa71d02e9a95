// The checks of the loss and of the optimizers.
#include <algorithm>
#include <cmath>

#include "operations/doctor/kernels/kernel_case.h"

namespace hark::doctor {
namespace {

// Five steps of x -> a x + (b A + c A^2) x, A = x x^T, from x over its norm (Jordan et al. 2024);
// x has at most as many rows as columns.
Numbers newton_schulz(Numbers x, size_t rows) {
    const size_t columns = x.size() / rows;
    const double norm = std::sqrt(dot(x, x));
    for (double& value : x) value /= norm;
    for (int step = 0; step < 5; ++step) {
        const Numbers a = product_of(x, x, static_cast<int64_t>(columns));
        const Numbers squared = product_of(a, a, static_cast<int64_t>(rows));  // A is symmetric
        Numbers next = x;
        for (double& value : next) value *= 3.4445;
        for (size_t i = 0; i < rows; ++i)
            for (size_t j = 0; j < rows; ++j) {
                const double by = -4.7750 * a[i * rows + j] + 2.0315 * squared[i * rows + j];
                for (size_t k = 0; k < columns; ++k)
                    next[i * columns + k] += by * x[j * columns + k];
            }
        x = std::move(next);
    }
    return x;
}

constexpr int64_t kN = 32, kK = 64;  // a matrix of Muon's

}  // namespace

void check_cross_entropy(KernelCase& on) {
    constexpr size_t kRows = 4, kWidth = 40, kVocab = 37;
    constexpr double kScale = 0.25;
    const std::vector<int32_t> targets = {3, -1, 36, 0};
    const Operand logits = on.random({kRows, kWidth}, 2);
    const Tensor losses = on.zeros(Dtype::f32, {kRows});
    cross_entropy(on.ctx(), losses, logits.tensor, on.ids(targets), kVocab, kScale);
    Numbers of_losses(kRows), slopes(kRows * kWidth);
    for (size_t t = 0; t < kRows; ++t) {
        if (targets[t] < 0) continue;
        const double* const row = logits.values.data() + t * kWidth;
        double sum = 0;
        for (size_t i = 0; i < kVocab; ++i) sum += std::exp(row[i]);
        const auto target = static_cast<size_t>(targets[t]);
        of_losses[t] = std::log(sum) - row[target];
        for (size_t i = 0; i < kVocab; ++i)
            slopes[t * kWidth + i] = kScale * (std::exp(row[i]) / sum - (i == target ? 1 : 0));
    }
    on.expect(losses, of_losses);
    on.expect(logits.tensor, slopes);
}

void check_clip_by_norm(KernelCase& on) {
    const Operand x = on.random(Dtype::f32, {1000});
    const Tensor clip = on.zeros(Dtype::f32, {2});
    const double norm = std::sqrt(dot(x.values, x.values));
    for (const float most : {0.0f, 1.0f, 1e6f}) {
        clip_by_norm(on.ctx(), clip, x.tensor, most);
        on.expect(clip, {norm, most == 1 ? 1 / (norm + 1e-6) : 1});
    }
}

void check_adamw(KernelCase& on) {
    constexpr size_t kCount = 1000, kDecayed = 700;
    const Operand p = on.random(Dtype::f32, {kCount}), m = on.random(Dtype::f32, {kCount}),
                  g = on.random(Dtype::f32, {kCount}), clip = on.up({4, 0.5}, Dtype::f32, {2});
    const Operand roots = on.random(Dtype::f32, {kCount});
    Numbers squares;
    for (const double root : roots.values) squares.push_back(root * root);
    const Operand v = on.up(squares, Dtype::f32, {kCount});
    const AdamW with{.rate = 1e-2f, .step = 3};
    Numbers of_p = p.values, of_m = m.values, of_v = v.values;
    for (size_t i = 0; i < kCount; ++i) {
        const double gradient = g.values[i] * 0.5, rate = with.rate;
        of_m[i] = 0.9 * of_m[i] + 0.1 * gradient;
        of_v[i] = 0.95 * of_v[i] + 0.05 * gradient * gradient;
        if (i < kDecayed) of_p[i] -= rate * 0.1 * of_p[i];
        of_p[i] -= rate * of_m[i] / (1 - std::pow(0.9, 3)) /
                   (std::sqrt(of_v[i] / (1 - std::pow(0.95, 3))) + 1e-8);
    }
    adamw(on.ctx(), p.tensor, m.tensor, v.tensor, g.tensor, clip.tensor, kDecayed, with);
    on.expect(p.tensor, of_p);
    on.expect(m.tensor, of_m);
    on.expect(v.tensor, of_v);
}

void check_orthogonalize(KernelCase& on) {
    const Operand x = on.random(Dtype::f32, {kN, kK});
    const Tensor y = on.zeros(Dtype::f32, {kN, kK});
    orthogonalize(on.ctx(), y, x.tensor);
    on.expect(y, newton_schulz(x.values, kN), 4);
}

void check_muon(KernelCase& on) {
    const Operand p = on.random(Dtype::f32, {kN, kK}), m = on.random(Dtype::f32, {kN, kK}),
                  g = on.random(Dtype::f32, {kN, kK}), clip = on.up({4, 0.5}, Dtype::f32, {2});
    const Muon with{.rate = 1e-2f};
    Numbers of_m = m.values, update(m.values.size()), of_p = p.values;
    for (size_t i = 0; i < of_m.size(); ++i) {
        const double now = g.values[i] * 0.5;
        of_m[i] += (1 - 0.95) * (now - of_m[i]);
        update[i] = now + 0.95 * (of_m[i] - now);
    }
    update = newton_schulz(update, kN);
    const double rate = with.rate, step = rate * 0.2 * std::sqrt(static_cast<double>(kK));
    for (size_t i = 0; i < of_p.size(); ++i)
        of_p[i] = of_p[i] * (1 - rate * 0.1) - step * update[i];
    muon(on.ctx(), p.tensor, m.tensor, g.tensor, clip.tensor, with);
    on.expect(m.tensor, of_m);
    on.expect(p.tensor, of_p, 4);
}

}  // namespace hark::doctor
