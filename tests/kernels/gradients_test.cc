// Gradients against central differences of the same function in double, over odd sizes.
#include "kernels/gradients.h"

#include <functional>
#include <numeric>

#include "support/ops.h"

namespace hark::test {
namespace {

class Gradients : public testing::TestWithParam<DeviceCase> {
  protected:
    void SetUp() override {
        device_ = std::make_unique<TestDevice>(GetParam());
        if (!*device_) GTEST_SKIP() << device_->why_not();
    }
    Context& ctx() { return device_->ctx(); }
    Tensor up(const std::vector<float>& values, std::initializer_list<int64_t> shape) {
        return device_->up(values, Dtype::f32, shape);
    }
    Tensor up(const std::vector<int32_t>& values) { return device_->up(values); }
    Tensor filled(std::initializer_list<int64_t> shape, float value) {
        Tensor t = device_->empty(Dtype::f32, shape);
        return up(std::vector<float>(static_cast<size_t>(t.size()), value), shape);
    }
    // The tensor's values less what it held before.
    void expect_gradient(const Tensor& t, std::vector<double> expected, double before = 0) {
        for (double& value : expected) value += before;
        expect_near(device_->down(t), expected, 4 * GetParam().tolerance);
    }
    std::unique_ptr<TestDevice> device_;
};

using Values = std::vector<double>;

Values in_double(const std::vector<float>& values) { return Values(values.begin(), values.end()); }

// The derivative of f by each of x.
Values derivative(const std::function<double(const Values&)>& f, Values x) {
    constexpr double kStep = 1e-4;
    Values slopes;
    for (double& value : x) {
        const double kept = value;
        value = kept + kStep;
        const double above = f(x);
        value = kept - kStep;
        slopes.push_back((above - f(x)) / (2 * kStep));
        value = kept;
    }
    return slopes;
}

double dot(const Values& a, const Values& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Values product(const Values& x, const Values& w, const Values& b, size_t k) {
    Values y;
    for (size_t t = 0; t < x.size() / k; ++t)
        for (size_t n = 0; n < b.size(); ++n)
            y.push_back(b[n] + std::inner_product(x.begin() + t * k, x.begin() + (t + 1) * k,
                                                  w.begin() + n * k, 0.0));
    return y;
}

TEST_P(Gradients, OfLinear) {
    for (const auto& [rows, k, n] : {std::array<int64_t, 3>{1, 1, 1}, {5, 7, 3}, {33, 19, 70}}) {
        SCOPED_TRACE(concat(rows, " x ", k, " x ", n));
        const auto x = random_values(rows * k, 1), w = random_values(n * k, 2);
        const auto b = random_values(n, 3), dy = random_values(rows * n, 4);
        Tensor dx = filled({rows, k}, 9), dw = filled({n, k}, 2), db = filled({n}, -1);
        linear_backward(ctx(), dx, dw, db, up(dy, {rows, n}), up(x, {rows, k}), up(w, {n, k}));
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

TEST_P(Gradients, OfActivations) {
    const auto gelu = [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); };
    const auto gelu_tanh = [](double x) {
        return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    };
    std::vector<float> x = random_values(2 * 45, 1, 2);
    for (const float extreme : {-30.0f, -6.0f, 0.0f, 6.0f, 30.0f}) x.push_back(extreme);
    const int64_t columns = std::ssize(x) / 5;
    const std::vector<float> dy = random_values(std::ssize(x), 2);
    for (const auto& [f, exact] :
         {std::pair<Activation, std::function<double(double)>>{Activation::gelu, gelu},
          {Activation::gelu_tanh, gelu_tanh}}) {
        Tensor input = up(x, {5, columns}), y = filled({5, columns}, 0), dx = up(dy, {5, columns});
        activate(ctx(), y, input, f);
        activate_backward(ctx(), dx, dx, input, f);
        Values expected, slopes;
        for (size_t i = 0; i < x.size(); ++i) {
            expected.push_back(exact(x[i]));
            slopes.push_back(dy[i] *
                             derivative([&](const Values& v) { return exact(v[0]); }, {x[i]})[0]);
        }
        expect_near(device_->down(y), expected, GetParam().tolerance);
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
    for (const auto& [rows, n] : {std::pair<int64_t, int64_t>{1, 2}, {3, 7}, {9, 64}, {4, 131}}) {
        SCOPED_TRACE(concat(rows, " x ", n));
        const auto x = random_values(rows * n, 1), w = random_values(n, 2);
        const auto b = random_values(n, 3), dy = random_values(rows * n, 4);
        Tensor dx = filled({rows, n}, 1), dw = filled({n}, 2), db = filled({n}, 3);
        layer_norm_backward(ctx(), dx, dw, db, up(dy, {rows, n}), up(x, {rows, n}), up(w, {n}));
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

TEST_P(Gradients, OfEmbedding) {
    constexpr int64_t kRows = 9, kColumns = 70;
    const std::vector<int32_t> tokens = {3, 0, 3, 1, 3, 4, 4, 0, 3},
                               places = {0, 1, 2, 0, 1, 2, 3, 0, 1};
    const auto dy = random_values(kRows * kColumns, 1);
    Tensor table = filled({5, kColumns}, 1), positions = filled({4, kColumns}, -1);
    embedding_backward(ctx(), table, positions, up(dy, {kRows, kColumns}), up(tokens), up(places));
    Values of_tokens(5 * kColumns), of_places(4 * kColumns);
    for (size_t t = 0; t < kRows; ++t)
        for (size_t c = 0; c < kColumns; ++c) {
            of_tokens[static_cast<size_t>(tokens[t]) * kColumns + c] += dy[t * kColumns + c];
            of_places[static_cast<size_t>(places[t]) * kColumns + c] += dy[t * kColumns + c];
        }
    expect_gradient(table, of_tokens, 1);
    expect_gradient(positions, of_places, -1);
}

TEST_P(Gradients, OfCrossEntropy) {
    constexpr int64_t kRows = 4, kColumns = 21, kVocab = 19;
    const auto logits = random_values(kRows * kColumns, 1, 3);
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
        Tensor x = up(logits, {kRows, kColumns}), losses = filled({kRows}, 5);
        cross_entropy(ctx(), losses, x, up(targets), kVocab, scale);
        expect_near(device_->down(losses), expected, GetParam().tolerance);
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

// Five steps of x -> a x + (b A + c A^2) x, A = x x^T, from x over its norm; rows x columns of any
// shape, whose results are each other's transposes.
Values orthogonalized(Values x, size_t rows) {
    const size_t columns = x.size() / rows;
    const double norm = std::sqrt(dot(x, x));
    for (double& value : x) value /= norm;
    // (n, m) times (m, k)
    const auto times = [](const Values& a, const Values& b, size_t n, size_t m, size_t k) {
        Values c(n * k);
        for (size_t i = 0; i < n; ++i)
            for (size_t l = 0; l < m; ++l)
                for (size_t j = 0; j < k; ++j) c[i * k + j] += a[i * m + l] * b[l * k + j];
        return c;
    };
    for (int step = 0; step < 5; ++step) {
        Values turned(x.size());
        for (size_t i = 0; i < rows; ++i)
            for (size_t j = 0; j < columns; ++j) turned[j * rows + i] = x[i * columns + j];
        const Values a = times(x, turned, rows, columns, rows), a2 = times(a, a, rows, rows, rows);
        Values b(a.size());
        for (size_t i = 0; i < a.size(); ++i) b[i] = -4.7750 * a[i] + 2.0315 * a2[i];
        const Values bx = times(b, x, rows, rows, columns);
        for (size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + bx[i];
    }
    return x;
}

// Three steps beside the paper's own arithmetic in double.
TEST_P(Gradients, AdamWStepsAndClips) {
    constexpr int64_t kCount = 20003, kDecayed = 17001;
    const auto start = random_values(kCount, 1);
    Tensor p = up(start, {kCount}), m = filled({kCount}, 0), v = filled({kCount}, 0);
    Tensor clip = filled({2}, 0);
    Values ps = in_double(start), ms(kCount), vs(kCount);
    AdamW with = {.rate = 1e-2f, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .decay = 0.1f};
    for (with.step = 1; with.step <= 3; ++with.step) {
        const auto g = random_values(kCount, 10 + static_cast<uint64_t>(with.step));
        const float most = with.step == 2 ? 0.0f : with.step == 3 ? 1e9f : 1.0f;
        const double norm = std::sqrt(dot(in_double(g), in_double(g)));
        const double factor = with.step == 1 ? 1 / (norm + 1e-6) : 1;
        clip_by_norm(ctx(), clip, up(g, {kCount}), most);
        const std::vector<float> clipped = device_->down(clip);
        EXPECT_NEAR(clipped[0], norm, 1e-5 * norm);
        EXPECT_NEAR(clipped[1], factor, 1e-5 * factor);
        adamw(ctx(), p, m, v, up(g, {kCount}), clip, kDecayed, with);
        for (size_t i = 0; i < kCount; ++i) {
            const double gradient = g[i] * factor, rate = with.rate;
            ms[i] = 0.9 * ms[i] + 0.1 * gradient;
            vs[i] = 0.95 * vs[i] + 0.05 * gradient * gradient;
            if (i < kDecayed) ps[i] -= rate * 0.1 * ps[i];
            ps[i] -= rate * ms[i] / (1 - std::pow(0.9, with.step)) /
                     (std::sqrt(vs[i] / (1 - std::pow(0.95, with.step))) + 1e-8);
        }
    }
    expect_near(device_->down(p), ps, GetParam().tolerance);
    expect_near(device_->down(m), ms, GetParam().tolerance);
    expect_near(device_->down(v), vs, GetParam().tolerance);
}

// The singular values of x become nearly 1: y y^T is near the identity, and y keeps x's directions.
TEST_P(Gradients, OrthogonalMatricesAreNearXs) {
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{8, 8}, {5, 40}, {40, 5}, {33, 70}}) {
        SCOPED_TRACE(concat(n, " x ", k));
        const auto values = random_values(n * k, 3, 1e-3);
        Tensor y = filled({n, k}, 7);
        orthogonalize(ctx(), y, up(values, {n, k}));
        const std::vector<float> found = device_->down(y);
        // The sum of singular values' squares, and the product with x: the sum of its own.
        double squares = 0, along = 0, size = 0;
        for (size_t i = 0; i < found.size(); ++i) {
            squares += std::pow(found[i], 2);
            along += static_cast<double>(found[i]) * values[i];
            size += std::pow(values[i], 2);
        }
        const auto rank = static_cast<double>(std::min(n, k));
        EXPECT_GT(squares, rank * 0.6 * 0.6);
        EXPECT_LT(squares, rank * 1.25 * 1.25);
        EXPECT_GT(along, 0.6 * std::sqrt(size * rank) * std::sqrt(1 / rank));
        Tensor in_place = up(values, {n, k});
        orthogonalize(ctx(), in_place, in_place);
        EXPECT_EQ(device_->down(in_place), found);
        // The iteration in double.
        expect_near(found, orthogonalized(in_double(values), static_cast<size_t>(n)),
                    40 * GetParam().tolerance);
    }
}

TEST_P(Gradients, MuonStepsAlongTheOrthogonalMomentum) {
    constexpr int64_t kRows = 6, kColumns = 9;
    const auto start = random_values(kRows * kColumns, 1), g = random_values(kRows * kColumns, 2);
    Tensor p = up(start, {kRows, kColumns}), m = filled({kRows, kColumns}, 0);
    const Tensor clip = up(std::vector<float>{3, 0.5}, {2});
    muon(ctx(), p, m, up(g, {kRows, kColumns}), clip,
         {.rate = 0.01f, .momentum = 0.9f, .decay = 0.1f});
    Values nesterov, expected, moment;
    for (const float value : g) {
        moment.push_back(0.1 * 0.5 * value);
        nesterov.push_back(0.5 * value + 0.9 * (moment.back() - 0.5 * value));
    }
    nesterov = orthogonalized(nesterov, kRows);
    for (size_t i = 0; i < g.size(); ++i)
        expected.push_back(start[i] * (1 - 0.01 * 0.1) - 0.01 * 0.2 * 3 * nesterov[i]);
    expect_near(device_->down(m), moment, GetParam().tolerance);
    expect_near(device_->down(p), expected, GetParam().tolerance);
}

TEST_P(Gradients, ANormThatIsNoNumberIsSeen) {
    std::vector<float> g = random_values(40000, 1);
    g[33333] = std::numeric_limits<float>::quiet_NaN();
    Tensor clip = filled({2}, 0);
    clip_by_norm(ctx(), clip, up(g, {40000}), 1);
    EXPECT_TRUE(std::isnan(device_->down(clip)[0]) && std::isnan(device_->down(clip)[1]));
}

TEST_P(Gradients, WrongShapesAreErrors) {
    Tensor x = filled({3, 4}, 1), w = filled({5, 4}, 1), dy = filled({3, 5}, 1), b = filled({5}, 0);
    EXPECT_THROW(linear_backward(ctx(), x, w, b, x, x, w), Error);
    EXPECT_THROW(linear_backward(ctx(), x, dy, b, dy, x, w), Error);
    EXPECT_THROW(activate(ctx(), x, x, Activation::none), Error);
    EXPECT_THROW(layer_norm_backward(ctx(), x, b, b, x, x, b), Error);
    EXPECT_THROW(cross_entropy(ctx(), filled({3}, 0), x, up(std::vector<int32_t>{0, 4, 1}), 4, 1),
                 Error);
    EXPECT_THROW(cross_entropy(ctx(), filled({3}, 0), x, up(std::vector<int32_t>{0, 1, 1}), 5, 1),
                 Error);
    EXPECT_THROW(clip_by_norm(ctx(), filled({3}, 0), b, 1), Error);
    EXPECT_THROW(adamw(ctx(), b, b, b, b, filled({2}, 1), 6, {}), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, Gradients, testing::Values(kCpuCase, kOneThreadCase),
                         name_of_case);

}  // namespace
}  // namespace hark::test
