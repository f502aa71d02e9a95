// The checks of products.
#include <cmath>

#include "kernels/quant/quantize.h"
#include "operations/doctor/kernels/kernel_case.h"

namespace hark::doctor {
namespace {

// Weights of a product whose sums are about as large as x.
constexpr double of_sums(int64_t k) { return k == 64 ? 0.125 : k == 256 ? 0.0625 : 0.07; }

// The types of weights that linear() takes for these activations.
std::vector<Dtype> weight_types(const KernelCase& on, bool on_gpu) {
    std::vector<Dtype> types = {on.activations(), Dtype::i8, Dtype::fp8};
    if (!on_gpu) types.insert(types.end(), {Dtype::f16, Dtype::bf16});
#define HARK_QUANTIZED(name, ...) \
    if (can_quantize(Dtype::name)) types.push_back(Dtype::name);
#include "core/quantized_types.def"
#undef HARK_QUANTIZED
    return types;
}

// Compares a product by these weights. The CPU rounds x: to about 16 bits for quantised weights and
// int8, of more rows than kFewRowsOnCpu to bf16 or int8 for weights of these types.
void expect_product(KernelCase& on, const Tensor& y, const Numbers& expected, Dtype weights) {
    if (on.ctx().on_cuda() || weights == Dtype::f32 || weights == Dtype::f16 ||
        weights == Dtype::fp8)
        return on.expect(y, expected, 2);
    const bool is_whole = weights == Dtype::i8, is_bf16 = weights == Dtype::bf16;
    const bool is_few = y.rows() <= kFewRowsOnCpu;
    if (is_few && is_bf16) return on.expect(y, expected, 2);
    if (is_few || is_quantized(weights)) return on.expect(on.down(y), expected, 0.5, Dtype::f16);
    on.expect(on.down(y), expected, is_whole ? 3 : 1, Dtype::bf16);
}

struct Weights {
    Matrix matrix;
    Numbers values;
};

Weights weights_of(KernelCase& on, Dtype dtype, int64_t n, int64_t k) {
    if (!has_row_scales(dtype)) {
        Operand w = on.random(dtype, {n, k}, of_sums(k));
        return {{w.tensor, {}}, w.values};
    }
    const Operand numbers = on.random(Dtype::f32, {n, k}, 30);
    Numbers stored;
    for (const double value : numbers.values)
        stored.push_back(dtype == Dtype::i8 ? std::fmin(std::fmax(std::nearbyint(value), -127), 127)
                                            : value);
    const Operand w = on.up(stored, dtype, {n, k});
    Numbers scales;
    for (int64_t row = 0; row < n; ++row)
        scales.push_back(of_sums(k) / 30 * (1 + 0.01 * static_cast<double>(row % 7)));
    const Operand by_row = on.up(scales, Dtype::f32, {n});
    Weights made{{w.tensor, by_row.tensor}, w.values};
    for (size_t i = 0; i < made.values.size(); ++i)
        made.values[i] *= by_row.values[i / static_cast<size_t>(k)];
    return made;
}

// E experts, one after another in memory.
struct ManyWeights {
    ExpertMatrices matrices;
    Numbers values;
};

ManyWeights experts_of(KernelCase& on, int64_t experts, int64_t n, int64_t k) {
    const Operand all = on.random({experts * n, k}, of_sums(k));
    ManyWeights made{{}, all.values};
    for (int64_t e = 0; e < experts; ++e)
        made.matrices.each.push_back({all.tensor.slice(e * n, (e + 1) * n), {}});
    return made;
}

// Product p of row p / (chosen.size() / T) and its expert, with the bias (E, N), if there is one.
Numbers expert_products(const Numbers& x, int64_t k, const Numbers& w, int64_t n,
                        const std::vector<int32_t>& chosen, const Numbers& bias) {
    const auto width = static_cast<size_t>(k), columns = static_cast<size_t>(n);
    const size_t rows = x.size() / width, each = chosen.size() / rows;
    Numbers y(chosen.size() * columns);
    for (size_t p = 0; p < chosen.size(); ++p)
        for (size_t j = 0; j < columns; ++j) {
            const size_t row = static_cast<size_t>(chosen[p]) * columns + j;
            double sum = bias.empty() ? 0 : bias[row];
            for (size_t i = 0; i < width; ++i) sum += x[p / each * width + i] * w[row * width + i];
            y[p * columns + j] = sum;
        }
    return y;
}

const std::vector<int32_t> kChosen = {0, 2, 3, 1, 2, 3,
                                      1, 0, 3, 0, 2, 1};  // of 6 rows of 4 experts

}  // namespace

void check_linear(KernelCase& on) {
    constexpr int64_t kN = 64, kK = 256;
    for (const Dtype dtype : weight_types(on, on.ctx().on_cuda()))
        for (const int64_t rows : {int64_t{3}, int64_t{40}}) {
            const Weights w = weights_of(on, dtype, kN, kK);
            const Operand x = on.random({rows, kK}), bias = on.random(Dtype::f32, {kN}),
                          residual = on.random({rows, kN});
            const Tensor y = on.zeros({rows, kN});
            linear(on.ctx(), y, x.tensor, w.matrix,
                   {bias.tensor, Activation::gelu, residual.tensor});
            Numbers expected = product_of(x.values, w.values, kK);
            for (size_t i = 0; i < expected.size(); ++i)
                expected[i] = residual.values[i] +
                              activated(Activation::gelu, expected[i] + bias.values[i % kN]);
            expect_product(on, y, expected, dtype);
        }
    // The norm of x first, and the gate of two halves last.
    const Operand x = on.random({4, kK}), w = on.random({2 * kN, kK}, of_sums(kK)),
                  weight = on.random(Dtype::f32, {kK});
    const Tensor y = on.zeros({4, kN});
    linear(on.ctx(), y, x.tensor, {w.tensor, {}}, {.activation = Activation::silu},
           {.norm = {weight.tensor, {}, 1e-5f, NormKind::rms}, .gated = true});
    Numbers scaled = normalized(x.values, kK, 1e-5, false);
    for (size_t i = 0; i < scaled.size(); ++i) scaled[i] *= weight.values[i % kK];
    const Numbers sums = product_of(scaled, w.values, kK);
    Numbers expected;
    for (size_t t = 0; t < 4; ++t)
        for (size_t j = 0; j < kN; ++j)
            expected.push_back(activated(Activation::silu, sums[t * 2 * kN + j]) *
                               sums[t * 2 * kN + kN + j]);
    on.expect(y, expected, 2);
}

void check_conv1d(KernelCase& on) {
    constexpr int64_t kT = 10, kC = 64, kN = 64;
    const Operand x = on.random({kT, kC}), w = on.random({kN, 3 * kC}, 0.07),
                  bias = on.random(Dtype::f32, {kN});
    for (const int stride : {1, 2}) {
        const int64_t rows = (kT - 1) / stride + 1;
        const Tensor y = on.zeros({rows, kN});
        conv1d(on.ctx(), y, x.tensor, {w.tensor, {}}, stride, {.bias = bias.tensor});
        Numbers expected;
        for (int64_t t = 0; t < rows; ++t)
            for (int64_t n = 0; n < kN; ++n) {
                double sum = bias.values[static_cast<size_t>(n)];
                for (int64_t tap = 0; tap < 3; ++tap) {
                    const int64_t at = t * stride + tap - 1;
                    for (int64_t c = 0; at >= 0 && at < kT && c < kC; ++c)
                        sum += x.values[static_cast<size_t>(at * kC + c)] *
                               w.values[static_cast<size_t>((n * 3 + tap) * kC + c)];
                }
                expected.push_back(sum);
            }
        on.expect(y, expected, 2);
    }
}

void check_expert_linear(KernelCase& on) {
    constexpr int64_t kRows = 6, kN = 64, kK = 64, kExperts = 4;
    const Operand x = on.random({kRows, kK}), bias = on.random(Dtype::f32, {kExperts, kN});
    ManyWeights w = experts_of(on, kExperts, kN, kK);
    w.matrices.bias = bias.tensor;
    const Tensor y = on.zeros({std::ssize(kChosen), kN});
    expert_linear(on.ctx(), y, x.tensor, w.matrices, on.ids(kChosen));
    on.expect(y, expert_products(x.values, kK, w.values, kN, kChosen, bias.values), 2);
}

void check_gated_experts(KernelCase& on) {
    constexpr int64_t kRows = 6, kN = 64, kK = 64, kExperts = 4;
    const Operand x = on.random({kRows, kK});
    const ManyWeights gate = experts_of(on, kExperts, kN, kK),
                      up = experts_of(on, kExperts, kN, kK);
    const Tensor y = on.zeros({std::ssize(kChosen), kN});
    gated_experts(on.ctx(), y, x.tensor, gate.matrices, up.matrices, on.ids(kChosen), {});
    Numbers expected = expert_products(x.values, kK, gate.values, kN, kChosen, {});
    const Numbers ups = expert_products(x.values, kK, up.values, kN, kChosen, {});
    for (size_t i = 0; i < expected.size(); ++i)
        expected[i] = activated(Activation::silu, expected[i]) * ups[i];
    on.expect(y, expected, 2);
}

void check_head_linear(KernelCase& on) {
    constexpr int64_t kRows = 5, kHeads = 2, kX = 96, kK = 64, kY = 128, kN = 64;
    const Operand x = on.random({kRows, kHeads * kX});
    const ManyWeights w = experts_of(on, kHeads, kN, kK);
    const Tensor y = on.zeros({kRows, kHeads * kY});
    head_linear(on.ctx(), {y, kY - kN}, {x.tensor, kX - kK}, w.matrices.each);
    Numbers expected(static_cast<size_t>(kRows * kHeads * kY));
    for (int64_t t = 0; t < kRows; ++t)
        for (int64_t h = 0; h < kHeads; ++h)
            for (int64_t n = 0; n < kN; ++n)
                for (int64_t k = 0; k < kK; ++k)
                    expected[static_cast<size_t>((t * kHeads + h) * kY + kY - kN + n)] +=
                        x.values[static_cast<size_t>((t * kHeads + h) * kX + kX - kK + k)] *
                        w.values[static_cast<size_t>((h * kN + n) * kK + k)];
    on.expect(y, expected, 2);
}

void check_linear_forward(KernelCase& on) {
    constexpr int64_t kRows = 24, kN = 64, kK = 64;
    const Operand x = on.random({kRows, kK}), w = on.random({kN, kK}, of_sums(kK)),
                  bias = on.random(Dtype::f32, {kN}), residual = on.random({kRows, kN});
    const Tensor y = on.zeros({kRows, kN});
    linear_forward(on.ctx(), y, x.tensor, w.tensor, bias.tensor, residual.tensor);
    Numbers expected = product_of(x.values, w.values, kK);
    for (size_t i = 0; i < expected.size(); ++i)
        expected[i] += bias.values[i % kN] + residual.values[i];
    on.expect(y, expected, 2);
}

void check_linear_activation(KernelCase& on) {
    constexpr int64_t kRows = 24, kN = 64, kK = 64;
    const Operand x = on.random({kRows, kK}), w = on.random({kN, kK}, of_sums(kK)),
                  bias = on.random(Dtype::f32, {kN});
    const Tensor y = on.zeros({kRows, kN}), h = on.zeros({kRows, kN});
    linear_activation(on.ctx(), y, h, x.tensor, w.tensor, bias.tensor, Activation::gelu_tanh);
    Numbers expected = product_of(x.values, w.values, kK);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += bias.values[i % kN];
    on.expect(h, expected, 2);
    for (double& value : expected) value = activated(Activation::gelu_tanh, value);
    on.expect(y, expected, 2);
}

// Of sum(dy * (x W^T + b)).
void check_linear_backward(KernelCase& on) {
    constexpr int64_t kRows = 24, kN = 64, kK = 64;
    const Operand x = on.random({kRows, kK}), w = on.random({kN, kK}, of_sums(kK)),
                  dy = on.random({kRows, kN});
    const Tensor dx = on.zeros({kRows, kK}), dw = on.zeros(Dtype::f32, {kN, kK}),
                 db = on.zeros(Dtype::f32, {kN});
    linear_backward(on.ctx(), dx, dw, db, dy.tensor, x.tensor, w.tensor);
    Numbers of_x(x.values.size()), of_w(w.values.size()), of_b(kN);
    for (size_t t = 0; t < kRows; ++t)
        for (size_t n = 0; n < kN; ++n) {
            const double slope = dy.values[t * kN + n];
            of_b[n] += slope;
            for (size_t k = 0; k < kK; ++k) {
                of_x[t * kK + k] += slope * w.values[n * kK + k];
                of_w[n * kK + k] += slope * x.values[t * kK + k];
            }
        }
    on.expect(dx, of_x, 2);
    on.expect(dw, of_w, 4);
    on.expect(db, of_b, 4);
}

}  // namespace hark::doctor
