// The checks of operations on rows: norms, activations, sums, copies.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "operations/doctor/kernels/kernel_case.h"

namespace hark::doctor {
namespace {

constexpr int64_t kT = 5, kC = 256;  // rows, channels
constexpr auto kWidth = static_cast<size_t>(kC);

constexpr Activation kFunctions[] = {Activation::gelu, Activation::gelu_tanh, Activation::silu};

double slope_of(Activation f, double x) {
    return derivative([&](const Numbers& at) { return activated(f, at[0]); }, {x})[0];
}

// The gradients of a norm: dx and dw are added to, and `sums` gets the columns of dx.
void check_norm_backward(KernelCase& on, bool with_mean) {
    constexpr int64_t kRows = 3, kColumns = 64;
    const float eps = 1e-5f;
    const Operand x = on.random({kRows, kColumns}), w = on.random(Dtype::f32, {kColumns}),
                  dy = on.random({kRows, kColumns}), before = on.random({kRows, kColumns}),
                  kept = on.random(Dtype::f32, {kColumns});
    const Tensor dw = kept.tensor, db = on.zeros(Dtype::f32, {kColumns}), dx = before.tensor,
                 sums = on.zeros(Dtype::f32, {kColumns});
    if (with_mean)
        layer_norm_backward(on.ctx(), dx, dw, db, dy.tensor, x.tensor, w.tensor, eps, sums);
    else
        rms_norm_backward(on.ctx(), dx, dw, dy.tensor, x.tensor, w.tensor, eps, sums);
    const auto loss = [&](const Numbers& at) {
        const Numbers y = normalized(at, kColumns, eps, with_mean);
        double sum = 0;
        for (size_t i = 0; i < y.size(); ++i) sum += dy.values[i] * y[i] * w.values[i % kColumns];
        return sum;
    };
    Numbers of_x = derivative(loss, x.values), of_w = kept.values, of_b(kColumns),
            of_sums(kColumns);
    const Numbers y = normalized(x.values, kColumns, eps, with_mean);
    for (size_t i = 0; i < of_x.size(); ++i) {
        of_x[i] += before.values[i];
        of_w[i % kColumns] += dy.values[i] * y[i];
        of_b[i % kColumns] += dy.values[i];
        of_sums[i % kColumns] += of_x[i];
    }
    on.expect(dx, of_x, 2);
    on.expect(dw, of_w, 4);
    on.expect(sums, of_sums, 4);
    if (with_mean) on.expect(db, of_b, 4);
}

}  // namespace

void check_layer_norm(KernelCase& on) {
    const Operand x = on.random({kT, kC}), w = on.random(Dtype::f32, {kC}),
                  b = on.random(Dtype::f32, {kC});
    const Tensor y = on.zeros({kT, kC});
    layer_norm(on.ctx(), y, x.tensor, w.tensor, b.tensor);
    Numbers expected = normalized(x.values, kC, 1e-5, true);
    for (size_t i = 0; i < expected.size(); ++i)
        expected[i] = expected[i] * w.values[i % kWidth] + b.values[i % kWidth];
    on.expect(y, expected);
}

void check_rms_norm(KernelCase& on) {
    const Operand x = on.random({kT, kC}), w = on.random(Dtype::f32, {kC});
    const Tensor y = on.zeros({kT, kC});
    rms_norm(on.ctx(), y, x.tensor, w.tensor, 1e-5f);
    Numbers expected = normalized(x.values, kC, 1e-5, false);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] *= w.values[i % kWidth];
    on.expect(y, expected);
}

void check_gated_activation(KernelCase& on) {
    const Operand both = on.random({kT, 2 * kC});
    for (const Activation f : kFunctions) {
        const Tensor y = on.zeros({kT, kC});
        gated_activation(on.ctx(), y, {both.tensor, 0}, {both.tensor, kC}, f);
        Numbers expected;
        for (size_t t = 0; t < kT; ++t)
            for (size_t i = 0; i < kWidth; ++i)
                expected.push_back(activated(f, both.values[t * 2 * kWidth + i]) *
                                   both.values[t * 2 * kWidth + kWidth + i]);
        on.expect(y, expected);
    }
}

void check_clamped_swiglu(KernelCase& on) {
    const Operand both = on.random({kT, 2 * kC}, 3);
    const Tensor y = on.zeros({kT, kC});
    constexpr float kSlope = 1.702f, kLimit = 4;
    clamped_swiglu(on.ctx(), y, {both.tensor, 0}, {both.tensor, kC}, kSlope, kLimit);
    Numbers expected;
    for (size_t t = 0; t < kT; ++t)
        for (size_t i = 0; i < kWidth; ++i) {
            const double gate = std::min<double>(both.values[t * 2 * kWidth + i], kLimit);
            const double up =
                std::clamp<double>(both.values[t * 2 * kWidth + kWidth + i], -kLimit, kLimit);
            expected.push_back((up + 1) * gate / (1 + std::exp(-kSlope * gate)));
        }
    on.expect(y, expected);
}

void check_route_experts(KernelCase& on) {
    constexpr int64_t kRows = 6, kExperts = 8, kChosen = 2;
    const Operand logits = on.random(Dtype::f32, {kRows, kExperts});
    const Tensor chosen = on.zeros(Dtype::i32, {kRows, kChosen}),
                 weights = on.zeros(Dtype::f32, {kRows, kChosen});
    route_experts(on.ctx(), chosen, weights, logits.tensor, {});
    Numbers experts, shares;
    for (size_t t = 0; t < kRows; ++t) {
        const double* const row = logits.values.data() + t * kExperts;
        std::vector<size_t> order(kExperts);
        std::iota(order.begin(), order.end(), size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](size_t a, size_t b) { return row[a] > row[b]; });
        const double first = std::exp(row[order[0]]), second = std::exp(row[order[1]]);
        for (const size_t expert : {order[0], order[1]}) {
            experts.push_back(static_cast<double>(expert));
            shares.push_back(std::exp(row[expert]) / (first + second));
        }
    }
    on.expect(on.down(chosen), experts, 1, Dtype::f32);
    on.expect(on.down(weights), shares, 1, Dtype::f32);
}

void check_add_experts(KernelCase& on) {
    constexpr size_t kEach = 2;
    const Operand x = on.random({kT, kC}), y = on.random({kT * 2, kC}),
                  weights = on.random(Dtype::f32, {kT, 2});
    Numbers expected = x.values;
    for (size_t t = 0; t < kT; ++t)
        for (size_t j = 0; j < kEach; ++j)
            for (size_t i = 0; i < kWidth; ++i)
                expected[t * kWidth + i] +=
                    weights.values[t * kEach + j] * y.values[(t * kEach + j) * kWidth + i];
    add_experts(on.ctx(), x.tensor, y.tensor, weights.tensor);
    on.expect(x.tensor, expected, 2);
}

void check_embedding(KernelCase& on) {
    const std::vector<int32_t> tokens = {3, 0, 6, 3, 1}, places = {0, 1, 2, 0, 1};
    const Operand table = on.random({7, kC}), positions = on.random(Dtype::f32, {3, kC});
    const Tensor y = on.zeros({kT, kC});
    embedding(on.ctx(), y, on.ids(tokens), on.ids(places), {table.tensor, {}}, positions.tensor, 2);
    Numbers expected;
    for (size_t t = 0; t < tokens.size(); ++t)
        for (size_t i = 0; i < kWidth; ++i)
            expected.push_back(2 * table.values[static_cast<size_t>(tokens[t]) * kWidth + i] +
                               positions.values[static_cast<size_t>(places[t]) * kWidth + i]);
    on.expect(y, expected);
}

void check_add_positions(KernelCase& on) {
    const Operand x = on.random({2, kT, kC}), positions = on.random(Dtype::f32, {kT, kC});
    Numbers expected = x.values;
    for (size_t i = 0; i < expected.size(); ++i)
        expected[i] += positions.values[i % positions.values.size()];
    add_positions(on.ctx(), x.tensor, positions.tensor);
    on.expect(x.tensor, expected);
}

void check_add_scaled(KernelCase& on) {
    const Operand x = on.random({kT, kC}), y = on.random({kT, kC});
    Numbers expected = x.values;
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += 0.75 * y.values[i];
    add_scaled(on.ctx(), x.tensor, y.tensor, 0.75f);
    on.expect(x.tensor, expected);
}

void check_scale_logits(KernelCase& on) {
    for (const float cap : {0.0f, 3.0f}) {
        const Operand x = on.random(Dtype::f32, {kT, kC}, 4);
        Numbers expected;
        for (const double value : x.values)
            expected.push_back(cap > 0 ? cap * std::tanh(value * 0.5 / cap) : value * 0.5);
        scale_logits(on.ctx(), x.tensor, 0.5f, cap);
        on.expect(x.tensor, expected);
    }
}

void check_select_rows(KernelCase& on) {
    const std::vector<int32_t> rows = {4, 0, 4};
    const Operand x = on.random({kT, kC});
    const Tensor y = on.zeros({3, kC});
    select_rows(on.ctx(), y, x.tensor, on.ids(rows));
    Numbers expected;
    for (const int32_t row : rows)
        for (size_t i = 0; i < kWidth; ++i)
            expected.push_back(x.values[static_cast<size_t>(row) * kWidth + i]);
    on.expect(y, expected);
}

void check_set_zero(KernelCase& on) {
    const Operand x = on.random(Dtype::f32, {kT, kC});
    set_zero(on.ctx(), x.tensor);
    on.expect(x.tensor, Numbers(x.values.size()));
}

// One of the two neighbours, and the mean of many is the value.
void check_stochastic_round(KernelCase& on) {
    constexpr int64_t kMany = 4096;
    const double value = 1.0 + 0.25 / 128;  // a quarter of the way between two of bf16
    const Operand x = on.up(Numbers(kMany, value), Dtype::f32, {kMany});
    const Tensor to = on.zeros(Dtype::bf16, {kMany});
    stochastic_round(on.ctx(), to, x.tensor, 7);
    double sum = 0;
    Numbers apart;
    for (const double found : on.down(to)) {
        sum += found;
        apart.push_back(found == 1 || found == 1 + 1.0 / 128 ? 0 : 1);
    }
    apart.push_back((sum / kMany - value) * 10);
    on.expect(apart, Numbers(apart.size()), 1000, Dtype::f32);
}

void check_activate(KernelCase& on) {
    for (const Activation f : kFunctions) {
        const Operand x = on.random({kT, kC});
        const Tensor y = on.zeros({kT, kC});
        activate(on.ctx(), y, x.tensor, f);
        Numbers expected;
        for (const double value : x.values) expected.push_back(activated(f, value));
        on.expect(y, expected);
    }
}

void check_activate_backward(KernelCase& on) {
    for (const Activation f : kFunctions) {
        const Operand x = on.random({kT, kC}), dy = on.random({kT, kC});
        const Tensor dx = on.zeros({kT, kC});
        activate_backward(on.ctx(), dx, dy.tensor, x.tensor, f);
        Numbers expected;
        for (size_t i = 0; i < x.values.size(); ++i)
            expected.push_back(dy.values[i] * slope_of(f, x.values[i]));
        on.expect(dx, expected);
    }
}

void check_layer_norm_backward(KernelCase& on) { check_norm_backward(on, true); }
void check_rms_norm_backward(KernelCase& on) { check_norm_backward(on, false); }

void check_gated_activation_backward(KernelCase& on) {
    for (const Activation f : kFunctions) {
        const Operand both = on.random({kT, 2 * kC}), dy = on.random({kT, kC});
        const Tensor slopes = on.zeros({kT, 2 * kC});
        gated_activation_backward(on.ctx(), {slopes, 0}, {slopes, kC}, dy.tensor, {both.tensor, 0},
                                  {both.tensor, kC}, f);
        Numbers expected(both.values.size());
        for (size_t t = 0; t < kT; ++t)
            for (size_t i = 0; i < kWidth; ++i) {
                const size_t gate = t * 2 * kWidth + i, up = gate + kWidth;
                const double by = dy.values[t * kWidth + i];
                expected[gate] = by * slope_of(f, both.values[gate]) * both.values[up];
                expected[up] = by * activated(f, both.values[gate]);
            }
        on.expect(slopes, expected);
    }
}

void check_copy_columns(KernelCase& on) {
    const Operand from = on.random({kT, kC}), to = on.random({kT, kC});
    Numbers expected = to.values;
    for (size_t t = 0; t < kT; ++t)
        for (size_t i = 0; i < 64; ++i)
            expected[t * kWidth + 128 + i] = from.values[t * kWidth + 64 + i];
    copy_columns(on.ctx(), {to.tensor, 128}, {from.tensor, 64}, 64);
    on.expect(to.tensor, expected);
}

void check_embedding_backward(KernelCase& on) {
    const std::vector<int32_t> tokens = {3, 0, 6, 3, 1}, places = {0, 1, 2, 0, 1};
    const Operand dy = on.random({kT, kC}), table = on.random(Dtype::f32, {7, kC});
    const Tensor positions = on.zeros(Dtype::f32, {3, kC});
    Numbers of_table = table.values, of_positions(3 * kWidth);
    for (size_t t = 0; t < tokens.size(); ++t)
        for (size_t i = 0; i < kWidth; ++i) {
            of_table[static_cast<size_t>(tokens[t]) * kWidth + i] += dy.values[t * kWidth + i];
            of_positions[static_cast<size_t>(places[t]) * kWidth + i] += dy.values[t * kWidth + i];
        }
    embedding_backward(on.ctx(), table.tensor, positions, dy.tensor, on.ids(tokens),
                       on.ids(places));
    on.expect(table.tensor, of_table);
    on.expect(positions, of_positions);
}

}  // namespace hark::doctor
