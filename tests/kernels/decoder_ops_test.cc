// The operations of decoders since Llama against double: rms_norm, gated_activation, rope_append,
// add_scaled, scale_logits, and the embedding without positions.
#include "kernels/ops.h"
#include "support/ops.h"

namespace hark::test {
namespace {

class DecoderOps : public testing::TestWithParam<DeviceCase> {
  protected:
    void SetUp() override {
        if (!device_) GTEST_SKIP() << device_.why_not();
    }
    Dtype dtype() const { return GetParam().activations; }
    std::vector<float> values(int64_t n, uint64_t seed, double deviation = 1) const {
        return TestDevice::rounded(random_values(n, seed, deviation), dtype());
    }
    void expect(const Tensor& found, const std::vector<double>& expected, double factor = 1) {
        expect_near(device_.down(found), expected, factor * GetParam().tolerance);
    }

    TestDevice device_{GetParam()};
};

double activated(double x, Activation f) {
    if (f == Activation::silu) return x / (1 + std::exp(-x));
    if (f == Activation::gelu) return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

std::vector<double> rms_normed(const float* x, const std::vector<float>& w, double eps) {
    double squares = 0;
    for (size_t c = 0; c < w.size(); ++c) squares += static_cast<double>(x[c]) * x[c];
    const double factor = 1 / std::sqrt(squares / static_cast<double>(w.size()) + eps);
    std::vector<double> y;
    for (size_t c = 0; c < w.size(); ++c) y.push_back(x[c] * factor * w[c]);
    return y;
}

TEST_P(DecoderOps, RmsNorm) {
    for (const int64_t columns : {1, 7, 64, 1023, 2048, 5120})
        for (const int64_t rows : {1, 3, 70}) {
            SCOPED_TRACE(concat(rows, " x ", columns));
            const Arena::Scope scope(device_.ctx().arena);
            const std::vector<float> x = values(rows * columns, 1, 3);
            const std::vector<float> w = random_values(columns, 2);
            Tensor xy = device_.up(x, dtype(), {rows, columns});
            rms_norm(device_.ctx(), xy, xy, device_.up(w, Dtype::f32, {columns}), 1e-3f);
            std::vector<double> expected;
            for (int64_t t = 0; t < rows; ++t)
                for (const double y : rms_normed(x.data() + t * columns, w, 1e-3))
                    expected.push_back(y);
            expect(xy, expected);
        }
}

// Gate and up are columns of one tensor, or tensors of their own; rows of a whole number of vectors
// and others.
TEST_P(DecoderOps, GatedActivation) {
    for (const Activation f : {Activation::silu, Activation::gelu, Activation::gelu_tanh})
        for (const auto& [n, gate, up] :
             {std::array<int64_t, 3>{96, 0, 96}, {96, 96, 0}, {13, 2, 17}}) {
            const Arena::Scope scope(device_.ctx().arena);
            const int64_t rows = 5, width = 2 * n + 8;
            const std::vector<float> x = values(rows * width, 3, 2);
            Tensor rows_of = device_.up(x, dtype(), {rows, width});
            Tensor y = device_.empty(dtype(), {rows, n});
            gated_activation(device_.ctx(), y, {rows_of, gate}, {rows_of, up}, f);
            std::vector<double> expected;
            for (int64_t t = 0; t < rows; ++t)
                for (int64_t c = 0; c < n; ++c)
                    expected.push_back(activated(x[size_t(t * width + gate + c)], f) *
                                       x[size_t(t * width + up + c)]);
            expect(y, expected);
        }
}

struct RopeCase {
    int64_t heads, kv_heads, d, half;  // half: number of frequencies
    bool norms;
};

TEST_P(DecoderOps, RopeAppend) {
    for (const RopeCase& c : {RopeCase{4, 2, 64, 32, false},
                              {2, 1, 20, 6, true},
                              {3, 3, 128, 64, true},
                              {2, 2, 8, 0, false}}) {
        SCOPED_TRACE(concat(c.d, " channels, ", c.half, " frequencies"));
        const Arena::Scope scope(device_.ctx().arena);
        const std::vector<int32_t> starts = {0, 3, 4}, slots = {1, 0}, lengths = {9, 1},
                                   positions = {6, 7, 8, 4000};
        const int64_t rows = 4, capacity = 10, q_width = c.heads * c.d, kv = c.kv_heads * c.d;
        const int64_t width = q_width + 2 * kv;
        const std::vector<float> x = values(rows * width, 1);
        const std::vector<float> q_norm = random_values(c.d, 2), k_norm = random_values(c.d, 3);
        std::vector<float> frequencies;
        for (int64_t i = 0; i < c.half; ++i)
            frequencies.push_back(std::pow(10000.0f, -float(i) / float(c.half)));
        Tensor qkv = device_.up(x, dtype(), {rows, width});
        const std::vector<float> none(size_t(2 * c.kv_heads * capacity * c.d), 0.5f);
        Tensor keys = device_.up(none, dtype(), {2, c.kv_heads, capacity, c.d});
        Tensor cached = device_.up(none, dtype(), {2, c.kv_heads, capacity, c.d});
        const auto norm = [&](const std::vector<float>& w) {
            if (!c.norms) return Norm{};
            return Norm{device_.up(w, Dtype::f32, {c.d}), {}, 1e-5f, NormKind::rms};
        };
        const Rope rope{c.half > 0 ? device_.up(frequencies, Dtype::f32, {c.half}) : Tensor(),
                        1.25f};
        rope_append(device_.ctx(), keys, cached, {qkv, 0}, {qkv, q_width}, {qkv, q_width + kv},
                    c.heads, device_.up(positions), rope, norm(q_norm), norm(k_norm),
                    {device_.up(starts), device_.up(slots), device_.up(lengths), 3, 9});
        const auto turned = [&](int64_t t, int64_t column, const std::vector<float>& w) {
            const float* from = x.data() + t * width + column;
            std::vector<double> head(from, from + c.d), out;
            if (c.norms) head = rms_normed(from, w, 1e-5);
            out = head;
            for (int64_t i = 0; i < c.half; ++i) {
                const double angle = positions[size_t(t)] * frequencies[size_t(i)];
                const double low = head[size_t(i)], high = head[size_t(i + c.half)];
                out[size_t(i)] = 1.25 * (low * std::cos(angle) - high * std::sin(angle));
                out[size_t(i + c.half)] = 1.25 * (high * std::cos(angle) + low * std::sin(angle));
            }
            return out;
        };
        // Position 4000 times a frequency in float32 is up to 2e-4 radians off.
        const double factor = GetParam().activations == Dtype::f32 ? 60 : 1;
        std::vector<double> all, expected_keys(none.begin(), none.end()),
            expected_values(none.begin(), none.end());
        for (int64_t t = 0; t < rows; ++t) {
            const int64_t slot = t < 3 ? 1 : 0, place = t < 3 ? 6 + t : 0;
            for (int64_t h = 0; h < c.heads; ++h)
                for (const double y : turned(t, h * c.d, q_norm)) all.push_back(y);
            for (int64_t h = 0; h < c.kv_heads; ++h) {
                const auto key = turned(t, q_width + h * c.d, k_norm);
                const int64_t to = ((slot * c.kv_heads + h) * capacity + place) * c.d;
                for (int64_t i = 0; i < c.d; ++i) {
                    all.push_back(key[size_t(i)]);
                    expected_keys[size_t(to + i)] = key[size_t(i)];
                    expected_values[size_t(to + i)] =
                        x[size_t(t * width + q_width + kv + h * c.d + i)];
                }
            }
            for (int64_t i = 0; i < kv; ++i) all.push_back(x[size_t(t * width + q_width + kv + i)]);
        }
        expect(qkv, all, factor);
        expect(keys, expected_keys, factor);
        expect(cached, expected_values);
    }
}

TEST_P(DecoderOps, AddScaled) {
    const std::vector<float> x = values(3 * 40, 1), y = values(3 * 40, 2);
    Tensor to = device_.up(x, dtype(), {3, 40});
    add_scaled(device_.ctx(), to, device_.up(y, dtype(), {3, 40}), 0.22f);
    std::vector<double> expected;
    for (size_t i = 0; i < x.size(); ++i) expected.push_back(x[i] + 0.22f * double(y[i]));
    expect(to, expected);
}

TEST_P(DecoderOps, ScaleLogits) {
    const std::vector<float> x = random_values(2 * 300, 1, 20);
    for (const float cap : {0.0f, 30.0f}) {
        Tensor logits = device_.up(x, Dtype::f32, {2, 300});
        scale_logits(device_.ctx(), logits, 0.125f, cap);
        std::vector<double> expected;
        for (const float v : x) {
            const double scaled = v * 0.125;
            expected.push_back(cap > 0 ? cap * std::tanh(scaled / cap) : scaled);
        }
        expect_near(device_.down(logits), expected, 1e-5);
    }
}

TEST_P(DecoderOps, EmbeddingWithoutPositions) {
    const std::vector<float> table = values(11 * 24, 1);
    const std::vector<int32_t> tokens = {10, 0, 3}, positions = {7, 8, 9};
    Tensor y = device_.empty(dtype(), {3, 24});
    embedding(device_.ctx(), y, device_.up(tokens), device_.up(positions),
              {device_.up(table, dtype(), {11, 24}), {}}, {}, 8.5f);
    std::vector<double> expected;
    for (const int32_t token : tokens)
        for (int c = 0; c < 24; ++c) expected.push_back(8.5 * table[size_t(token * 24 + c)]);
    expect(y, expected);
}

TEST_P(DecoderOps, RefuseWrongShapes) {
    Context& ctx = device_.ctx();
    const Tensor x = device_.up(std::vector<float>(16), dtype(), {2, 8});
    const Tensor w = device_.empty(Dtype::f32, {7});
    EXPECT_THROW(rms_norm(ctx, x, x, w, 1e-5f), Error);
    EXPECT_THROW(gated_activation(ctx, x, {x, 1}, {x, 0}, Activation::silu), Error);
    EXPECT_THROW(gated_activation(ctx, x, {x, 0}, {x, 0}, Activation::none), Error);
    EXPECT_THROW(add_scaled(ctx, x, device_.empty(dtype(), {2, 9}), 1), Error);
    EXPECT_THROW(scale_logits(ctx, device_.empty(Dtype::f32, {2, 9}), 1, -1), Error);
    const std::vector<int32_t> starts = {0, 2}, zeros = {0, 0};
    Tensor cache = device_.empty(dtype(), {1, 1, 4, 4});
    const BatchLayout rows{device_.up(starts), device_.up(std::vector<int32_t>{0}),
                           device_.up(std::vector<int32_t>{2}), 2, 2};
    const auto append = [&](const Columns& q, const Rope& rope) {
        rope_append(ctx, cache, cache, q, {x, 4}, {x, 4}, 1, device_.up(zeros), rope, {}, {}, rows);
    };
    EXPECT_NO_THROW(append({x, 0}, {}));
    EXPECT_THROW(append({x, 5}, {}), Error);
    EXPECT_THROW(append({x, 0}, {device_.empty(Dtype::f32, {3})}), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, DecoderOps,
                         testing::Values(kCpuCase, kCudaF32Case, kCudaF16Case, kCudaBf16Case),
                         name_of_case);

}  // namespace
}  // namespace hark::test
