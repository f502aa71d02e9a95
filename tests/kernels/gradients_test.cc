// Gradients against central differences of the same function in double, over odd sizes.
#include "kernels/gradients.h"

#include "support/gradients.h"

namespace hark::test {
namespace {

class Gradients : public GradientTest {};

Values product(const Values& x, const Values& w, const Values& b, size_t k) {
    Values y;
    for (size_t t = 0; t < x.size() / k; ++t)
        for (size_t n = 0; n < b.size(); ++n) y.push_back(b[n] + dot(&x[t * k], &w[n * k], k));
    return y;
}

TEST_P(Gradients, OfLinear) {
    for (const auto& [rows, k, n] : {std::array<int64_t, 3>{1, 1, 1}, {5, 7, 3}, {33, 19, 70}}) {
        SCOPED_TRACE(concat(rows, " x ", k, " x ", n));
        const auto x = random(rows * k, 1), w = random(n * k, 2);
        const auto b = random(n, 3), dy = random(rows * n, 4);
        Tensor dx = filled_active({rows, k}, 9), dw = filled({n, k}, 2), db = filled({n}, -1);
        linear_backward(ctx(), dx, dw, db, up_active(dy, {rows, n}), up_active(x, {rows, k}),
                        up_active(w, {n, k}));
        const Values xs = in_double(x), ws = in_double(w), bs = in_double(b), dys = in_double(dy);
        const auto k_size = static_cast<size_t>(k);
        expect_gradient(
            dx,
            derivative([&](const Values& x) { return dot(product(x, ws, bs, k_size), dys); }, xs));
        expect_gradient(
            dw,
            derivative([&](const Values& w) { return dot(product(xs, w, bs, k_size), dys); }, ws),
            2);
        expect_gradient(
            db,
            derivative([&](const Values& b) { return dot(product(xs, ws, b, k_size), dys); }, bs),
            -1);
    }
}

// Enough for the CPU to widen those of bf16 in parts, whose sums are put together.
TEST_P(Gradients, OfLinearWithManyWeights) {
    constexpr int64_t kRows = 3, kColumns = 1000, kOut = 1100;
    const auto w = random(kOut * kColumns, 1, 0.03), dy = random(kRows * kOut, 2);
    const auto x = random(kRows * kColumns, 3);
    Tensor dx = filled_active({kRows, kColumns}, 9), dw = filled({kOut, kColumns}, 0);
    linear_backward(ctx(), dx, dw, {}, up_active(dy, {kRows, kOut}),
                    up_active(x, {kRows, kColumns}), up_active(w, {kOut, kColumns}));
    Values expected(kRows * kColumns);
    for (size_t t = 0; t < kRows; ++t)
        for (size_t n = 0; n < kOut; ++n)
            add_scaled(&expected[t * kColumns], dy[t * kOut + n], &w[n * kColumns], kColumns);
    expect_values(dx, expected);
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_tanh(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// A product and what is fused after it, then the gradient through both.
TEST_P(Gradients, OfActivatedLinear) {
    for (const Activation f : {Activation::gelu, Activation::gelu_tanh})
        for (const auto& [rows, k, n] : {std::array<int64_t, 3>{5, 7, 3}, {33, 24, 40}}) {
            SCOPED_TRACE(concat(rows, " x ", k, " x ", n));
            const auto x = random(rows * k, 1), w = random(n * k, 2, 0.3);
            const auto b = random(n, 3), dy = random(rows * 8, 4), next = random(8 * n, 5, 0.5);
            Tensor h = filled_active({rows, n}, 9), y = filled_active({rows, n}, 9);
            Tensor dh = filled_active({rows, n}, 9), dw = filled({8, n}, 0);
            linear_activation(ctx(), y, h, up_active(x, {rows, k}), up_active(w, {n, k}),
                              up(b, {n}), f);
            linear_backward(ctx(), dh, dw, {}, up_active(dy, {rows, 8}), y, up_active(next, {8, n}),
                            {h, f});
            const Values hs =
                product(in_double(x), in_double(w), in_double(b), static_cast<size_t>(k));
            const auto exact = f == Activation::gelu ? gelu : gelu_tanh;
            const std::vector<float> kept = down(h);
            Values activated, slopes;
            for (size_t i = 0; i < hs.size(); ++i) {
                activated.push_back(exact(hs[i]));
                double sum = 0;
                for (size_t j = 0; j < 8; ++j)
                    sum += dy[i / static_cast<size_t>(n) * 8 + j] *
                           next[j * static_cast<size_t>(n) + i % static_cast<size_t>(n)];
                slopes.push_back(
                    sum * derivative([&](const Values& v) { return exact(v[0]); }, {kept[i]})[0]);
            }
            expect_values(h, hs, 4e-5);
            // What is not fused is rounded twice.
            const double second = activations() == Dtype::f32 ? 0 : 0x1p-8;
            expect_values(y, activated, 4e-5 + second);
            expect_values(dh, slopes, 4e-5 + 2 * second);
        }
}

TEST_P(Gradients, OfActivations) {
    std::vector<float> x = random(2 * 45, 1, 2);
    for (const float extreme : {-30.0f, -6.0f, 0.0f, 6.0f, 30.0f}) x.push_back(extreme);
    const int64_t columns = std::ssize(x) / 5;
    const std::vector<float> dy = random(std::ssize(x), 2);
    for (const auto& [f, exact] :
         {std::pair<Activation, std::function<double(double)>>{Activation::gelu, gelu},
          {Activation::gelu_tanh, gelu_tanh}}) {
        const Tensor input = up_active(x, {5, columns});
        Tensor y = filled_active({5, columns}, 0), dx = up_active(dy, {5, columns});
        activate(ctx(), y, input, f);
        activate_backward(ctx(), dx, dx, input, f);
        Values expected, slopes;
        for (size_t i = 0; i < x.size(); ++i) {
            expected.push_back(exact(x[i]));
            slopes.push_back(dy[i] *
                             derivative([&](const Values& v) { return exact(v[0]); }, {x[i]})[0]);
        }
        expect_values(y, expected);
        expect_gradient(dx, slopes);
    }
}

Values normalized(const Values& x, const Values& w, const Values& b) {
    const size_t n = w.size();
    Values y;
    for (size_t at = 0; at < x.size(); at += n) {
        double mean = 0, variance = 0;
        for (size_t i = 0; i < n; ++i) mean += x[at + i] / static_cast<double>(n);
        for (size_t i = 0; i < n; ++i)
            variance += std::pow(x[at + i] - mean, 2) / static_cast<double>(n);
        for (size_t i = 0; i < n; ++i)
            y.push_back((x[at + i] - mean) / std::sqrt(variance + 1e-5) * w[i] + b[i]);
    }
    return y;
}

TEST_P(Gradients, OfLayerNorm) {
    for (const auto& [rows, n] :
         {std::pair<int64_t, int64_t>{1, 2}, {3, 7}, {9, 64}, {4, 131}, {2, 520}}) {
        SCOPED_TRACE(concat(rows, " x ", n));
        const auto x = random(rows * n, 1), w = random_values(n, 2);
        const auto b = random_values(n, 3), dy = random(rows * n, 4);
        Tensor dx = filled_active({rows, n}, 1), dw = filled({n}, 2), db = filled({n}, 3);
        Tensor plain = filled_active({rows, n}, 1), other = filled({n}, 2), third = filled({n}, 3);
        Tensor sums = filled({n}, 4);
        layer_norm_backward(ctx(), dx, dw, db, up_active(dy, {rows, n}), up_active(x, {rows, n}),
                            up(w, {n}), 1e-5f, sums);
        layer_norm_backward(ctx(), plain, other, third, up_active(dy, {rows, n}),
                            up_active(x, {rows, n}), up(w, {n}));
        EXPECT_EQ(down(plain), down(dx));
        EXPECT_EQ(down(other), down(dw));
        EXPECT_EQ(down(third), down(db));
        Values of_rows(static_cast<size_t>(n), 4);
        const std::vector<float> after = down(dx);
        for (size_t i = 0; i < after.size(); ++i) of_rows[i % static_cast<size_t>(n)] += after[i];
        expect_near(down(sums), of_rows, 1e-5);
        const Values xs = in_double(x), ws = in_double(w), bs = in_double(b), dys = in_double(dy);
        expect_gradient(
            dx, derivative([&](const Values& x) { return dot(normalized(x, ws, bs), dys); }, xs),
            1);
        expect_gradient(
            dw, derivative([&](const Values& w) { return dot(normalized(xs, w, bs), dys); }, ws),
            2);
        expect_gradient(
            db, derivative([&](const Values& b) { return dot(normalized(xs, ws, b), dys); }, bs),
            3);
    }
}

Values rms_normalized(const Values& x, const Values& w, double eps) {
    const size_t n = w.size();
    Values y;
    for (size_t at = 0; at < x.size(); at += n) {
        double mean = 0;
        for (size_t i = 0; i < n; ++i) mean += x[at + i] * x[at + i] / static_cast<double>(n);
        for (size_t i = 0; i < n; ++i) y.push_back(x[at + i] / std::sqrt(mean + eps) * w[i]);
    }
    return y;
}

TEST_P(Gradients, OfRmsNorm) {
    constexpr float kEps = 1e-3f;
    for (const auto& [rows, n] :
         {std::pair<int64_t, int64_t>{1, 2}, {3, 7}, {9, 64}, {4, 131}, {2, 520}}) {
        SCOPED_TRACE(concat(rows, " x ", n));
        const auto x = random(rows * n, 1), dy = random(rows * n, 4);
        const auto w = random_values(n, 2);
        Tensor dx = filled_active({rows, n}, 1), dw = filled({n}, 2), sums = filled({n}, 4);
        Tensor plain = filled_active({rows, n}, 1), other = filled({n}, 2);
        const Tensor gradient = up_active(dy, {rows, n}), input = up_active(x, {rows, n});
        rms_norm_backward(ctx(), dx, dw, gradient, input, up(w, {n}), kEps, sums);
        rms_norm_backward(ctx(), plain, other, gradient, input, up(w, {n}), kEps);
        EXPECT_EQ(down(plain), down(dx));
        EXPECT_EQ(down(other), down(dw));
        Values of_rows(static_cast<size_t>(n), 4);
        const std::vector<float> after = down(dx);
        for (size_t i = 0; i < after.size(); ++i) of_rows[i % static_cast<size_t>(n)] += after[i];
        expect_near(down(sums), of_rows, 1e-5);
        const Values xs = in_double(x), ws = in_double(w), dys = in_double(dy);
        const auto loss = [&](const Values& x, const Values& w) {
            return dot(rms_normalized(x, w, kEps), dys);
        };
        expect_gradient(dx, derivative([&](const Values& x) { return loss(x, ws); }, xs), 1);
        expect_gradient(dw, derivative([&](const Values& w) { return loss(xs, w); }, ws), 2);
    }
}

double silu(double x) { return x / (1 + std::exp(-x)); }

// gate and up as columns of one tensor, and as tensors of their own.
TEST_P(Gradients, OfGatedActivation) {
    constexpr int64_t kRows = 5;
    for (const auto& [f, exact] :
         {std::pair<Activation, std::function<double(double)>>{Activation::silu, silu},
          {Activation::gelu, gelu},
          {Activation::gelu_tanh, gelu_tanh}})
        for (const int64_t n : {1, 19, 64}) {
            const auto both = random(kRows * 2 * n, 1, 2), dy = random(kRows * n, 2);
            std::vector<float> gates, ups;
            Values expected, of_gates, of_ups;  // of a row of both: d_gate, then d_up
            for (int64_t t = 0; t < kRows; ++t)
                for (const bool is_up : {false, true})
                    for (int64_t i = 0; i < n; ++i) {
                        const float gate = both[static_cast<size_t>(t * 2 * n + i)];
                        const float up = both[static_cast<size_t>(t * 2 * n + n + i)];
                        const auto slope =
                            derivative([&](const Values& v) { return exact(v[0]); }, {gate})[0];
                        const double by = dy[static_cast<size_t>(t * n + i)];
                        expected.push_back(by * (is_up ? exact(gate) : slope * up));
                        (is_up ? ups : gates).push_back(is_up ? up : gate);
                        (is_up ? of_ups : of_gates).push_back(expected.back());
                    }
            const Tensor gradient = up_active(dy, {kRows, n});
            const Tensor x = up_active(both, {kRows, 2 * n}), dx = filled_active({kRows, 2 * n}, 9);
            gated_activation_backward(ctx(), {dx}, {dx, n}, gradient, {x}, {x, n}, f);
            expect_gradient(dx, expected);
            const Tensor d_gate = filled_active({kRows, n}, 9), d_up = filled_active({kRows, n}, 9);
            gated_activation_backward(ctx(), {d_gate}, {d_up}, gradient,
                                      {up_active(gates, {kRows, n})}, {up_active(ups, {kRows, n})},
                                      f);
            expect_gradient(d_gate, of_gates);
            expect_gradient(d_up, of_ups);
        }
}

// Turned heads keep the other columns, and turning back is the transpose: scale^2 times the
// inverse.
TEST_P(Gradients, OfRope) {
    constexpr int64_t kRows = 4, kHeads = 3, kHead = 10, kWidth = 35, kFirst = 2, kHalf = 4;
    constexpr double kScale = 1.25;
    const std::vector<int32_t> position = {0, 1, 7, 200};
    const std::vector<float> frequencies = {1, 0.3f, 0.05f, 0.001f};
    const Rope by{up(frequencies, {kHalf}), static_cast<float>(kScale)};
    const auto x = random(kRows * kWidth, 1);
    for (const bool back : {false, true}) {
        Values expected = in_double(x);
        for (size_t t = 0; t < kRows; ++t)
            for (size_t h = 0; h < kHeads; ++h)
                for (size_t i = 0; i < kHalf; ++i) {
                    const size_t low = t * kWidth + kFirst + h * kHead + i, high = low + kHalf;
                    const double angle =
                        static_cast<double>(position[t]) * frequencies[i] * (back ? -1 : 1);
                    const double c = std::cos(angle) * kScale, s = std::sin(angle) * kScale;
                    expected[low] = x[low] * c - x[high] * s;
                    expected[high] = x[high] * c + x[low] * s;
                }
        const Tensor turned = up_active(x, {kRows, kWidth});
        rope(ctx(), {turned, kFirst}, kHeads, kHead, up(position), by, back);
        expect_values(turned, expected, 4e-5);
    }
}

TEST_P(Gradients, CopyTheColumnsAlone) {
    const auto x = random(3 * 7, 1), y = random(3 * 5, 2);
    const Tensor to = up_active(x, {3, 7});
    copy_columns(ctx(), {to, 2}, {up_active(y, {3, 5}), 1}, 4);
    std::vector<float> expected = x;
    for (size_t t = 0; t < 3; ++t)
        std::copy_n(y.begin() + static_cast<int64_t>(t * 5 + 1), 4,
                    expected.begin() + static_cast<int64_t>(t * 7 + 2));
    EXPECT_EQ(down(to), expected);
    EXPECT_THROW(copy_columns(ctx(), {to, 4}, {to, 0}, 4), Error);
}

TEST_P(Gradients, OfEmbedding) {
    constexpr int64_t kRows = 9, kColumns = 70;
    const std::vector<int32_t> tokens = {3, 0, 3, 1, 3, 4, 4, 0, 3},
                               places = {0, 1, 2, 0, 1, 2, 3, 0, 1};
    const auto dy = random(kRows * kColumns, 1);
    Tensor table = filled({5, kColumns}, 1), positions = filled({4, kColumns}, -1);
    embedding_backward(ctx(), table, positions, up_active(dy, {kRows, kColumns}), up(tokens),
                       up(places));
    Values of_tokens(5 * kColumns), of_places(4 * kColumns);
    for (size_t t = 0; t < kRows; ++t)
        for (size_t c = 0; c < kColumns; ++c) {
            of_tokens[static_cast<size_t>(tokens[t]) * kColumns + c] += dy[t * kColumns + c];
            of_places[static_cast<size_t>(places[t]) * kColumns + c] += dy[t * kColumns + c];
        }
    expect_gradient(table, of_tokens, 1);
    expect_gradient(positions, of_places, -1);
    Tensor alone = filled({5, kColumns}, 1);
    embedding_backward(ctx(), alone, {}, up_active(dy, {kRows, kColumns}), up(tokens), up(places));
    EXPECT_EQ(down(alone), down(table));
}

TEST_P(Gradients, OfCrossEntropy) {
    constexpr int64_t kRows = 4, kColumns = 21, kVocab = 19;
    const auto logits = random(kRows * kColumns, 1, 3);
    const std::vector<int32_t> targets = {0, 18, -1, 7};
    const auto loss = [&](const Values& x, size_t t) {
        if (targets[t] < 0) return 0.0;
        double total = 0;
        for (size_t v = 0; v < kVocab; ++v) total += std::exp(x[t * kColumns + v]);
        return std::log(total) - x[t * kColumns + static_cast<size_t>(targets[t])];
    };
    Values expected;
    for (size_t t = 0; t < kRows; ++t) expected.push_back(loss(in_double(logits), t));
    for (const float scale : {0.0f, 0.125f}) {
        Tensor x = up_active(logits, {kRows, kColumns}), losses = filled({kRows}, 5);
        cross_entropy(ctx(), losses, x, up(targets), kVocab, scale);
        expect_values(losses, expected);
        if (scale == 0) {
            EXPECT_EQ(device_->down(x), logits);
            continue;
        }
        expect_gradient(x, derivative(
                               [&](const Values& x) {
                                   double sum = 0;
                                   for (size_t t = 0; t < kRows; ++t) sum += loss(x, t);
                                   return scale * sum;
                               },
                               in_double(logits)));
    }
}

TEST_P(Gradients, WrongShapesAreErrors) {
    Tensor x = filled_active({3, 4}, 1), w = filled_active({5, 4}, 1);
    Tensor dy = filled_active({3, 5}, 1), b = filled({5}, 0);
    EXPECT_THROW(linear_backward(ctx(), x, w, b, x, x, w), Error);
    EXPECT_THROW(linear_backward(ctx(), x, dy, b, dy, x, w), Error);
    EXPECT_THROW(activate(ctx(), x, x, Activation::none), Error);
    // Of two types.
    const Tensor other = filled({3, 4}, 1, activations() == Dtype::f32 ? Dtype::bf16 : Dtype::f32);
    EXPECT_THROW(activate(ctx(), x, other, Activation::gelu), Error);
    EXPECT_THROW(
        layer_norm_backward(ctx(), x, filled({4}, 0), filled({4}, 0), other, x, filled({4}, 0)),
        Error);
    EXPECT_THROW(layer_norm_backward(ctx(), x, b, b, x, x, b), Error);
    EXPECT_THROW(rms_norm_backward(ctx(), x, b, x, x, b, 1e-5f), Error);
    EXPECT_THROW(gated_activation_backward(ctx(), {x}, {x, 2}, x, {x}, {x}, Activation::silu),
                 Error);
    EXPECT_THROW(rope(ctx(), {x}, 2, 2, up(std::vector<int32_t>{0, 1, 2}), {filled({2}, 1)}),
                 Error);
    if (!ctx().on_cuda()) {  // where a target can be seen
        EXPECT_THROW(
            cross_entropy(ctx(), filled({3}, 0), x, up(std::vector<int32_t>{0, 4, 1}), 4, 1),
            Error);
    }
    EXPECT_THROW(cross_entropy(ctx(), filled({3}, 0), x, up(std::vector<int32_t>{0, 1, 1}), 5, 1),
                 Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, Gradients,
                         testing::Values(kCpuCase, kOneThreadCase, kCpuBf16Case, kCudaF32Case,
                                         kCudaBf16Case),
                         name_of_case);

}  // namespace
}  // namespace hark::test
