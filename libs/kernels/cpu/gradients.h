// The loops of gradients and the optimizer, written once over `Vec` with the functions of
// elementwise.h. The compiler vectorises the plain ones.
#pragma once

static float dot_of(const float* a, const float* b, int64_t n) { return dot(a, b, n); }

// f'(x) of the activations of elementwise.h.
template <Activation activation>
static inline F slope_of(F x) {
    const F one = Vec::set(1.0f), square = Vec::mul(x, x);
    if constexpr (activation == Activation::silu) {  // s + x s (1 - s), s the logistic function
        const F s = Vec::reciprocal(Vec::add(one, exp_of(Vec::sub(Vec::set(0.0f), x))));
        return Vec::fma(Vec::mul(x, s), Vec::sub(one, s), s);
    }
    if constexpr (activation == Activation::gelu_tanh) {
        // x s(2u) with the logistic function s and gelu_tanh_of's u: the slope is s + 2 x s (1 - s)
        // u'.
        const F cubic = Vec::fma(Vec::mul(square, x), Vec::set(0.044715f), x);
        const F e = exp_of(Vec::mul(cubic, Vec::set(-2.0f * 0.79788456f)));
        const F s = Vec::reciprocal(Vec::add(one, e));
        const F u =
            Vec::fma(square, Vec::set(3 * 0.044715f * 2 * 0.79788456f), Vec::set(2 * 0.79788456f));
        return Vec::fma(Vec::mul(x, u), Vec::mul(s, Vec::sub(one, s)), s);
    }
    // P(X <= x) + x times the normal density.
    const F density = Vec::mul(exp_of(Vec::mul(square, Vec::set(-0.5f))), Vec::set(0.39894228f));
    const F tail = tail_of(x);
    const F below = Vec::where_below(x, Vec::set(0.0f), tail, Vec::sub(one, tail));
    return Vec::fma(x, density, below);
}

template <Activation activation>
static void activate_backward_of(float* dx, const float* dy, const float* x, int64_t n) {
    int64_t i = 0;
    for (; i + W <= n; i += W)
        Vec::store(dx + i, Vec::mul(Vec::load(dy + i), slope_of<activation>(Vec::load(x + i))));
    if (i < n)
        store_part(
            dx + i,
            Vec::mul(load_part(dy + i, n - i), slope_of<activation>(load_part(x + i, n - i))),
            n - i);
}

static void activate_backward(float* dx, const float* dy, const float* x, int64_t n,
                              Activation activation) {
    if (activation == Activation::gelu) return activate_backward_of<Activation::gelu>(dx, dy, x, n);
    if (activation == Activation::silu) return activate_backward_of<Activation::silu>(dx, dy, x, n);
    activate_backward_of<Activation::gelu_tanh>(dx, dy, x, n);
}

// With y = (x - mean) * inverse * w: g = dy w, h = (x - mean) * inverse,
// dx += inverse (g - mean of g - h * mean of (g h)).
static NormStatistics layer_norm_backward(float* dx, const float* dy, const float* x,
                                          const float* w, int64_t n, float eps) {
    const float count = static_cast<float>(n);
    const NormStatistics statistics = statistics_of(x, n, eps);
    const float inverse = statistics.inverse;
    const F center = Vec::set(statistics.mean), shift = Vec::set(statistics.error);
    const F scale = Vec::set(inverse);
    F sum = Vec::set(0.0f), projected = Vec::set(0.0f);
    int64_t i = 0;
    const auto add = [&](F g, F x) {
        sum = Vec::add(sum, g);
        const F h = Vec::mul(Vec::sub(Vec::sub(x, center), shift), scale);
        projected = Vec::fma(g, h, projected);
    };
    for (; i + W <= n; i += W) add(Vec::mul(Vec::load(dy + i), Vec::load(w + i)), Vec::load(x + i));
    if (i < n)  // past the end g is zero
        add(Vec::mul(load_part(dy + i, n - i), load_part(w + i, n - i)), load_part(x + i, n - i));
    const float g_mean = Vec::total(sum) / count, gh_mean = Vec::total(projected) / count;
    for (int64_t j = 0; j < n; ++j)
        dx[j] += inverse * (dy[j] * w[j] - g_mean -
                            (x[j] - statistics.mean - statistics.error) * inverse * gh_mean);
    return statistics;
}

static void norm_gradients(float* __restrict dw, float* __restrict db, const float* dy,
                           const float* x, const NormStatistics* rows, int64_t count,
                           int64_t stride, int64_t n) {
    for (int64_t t = 0; t < count; ++t, dy += stride, x += stride) {
        const auto [mean, error, inverse] = rows[t];
        for (int64_t i = 0; i < n; ++i) {
            dw[i] += dy[i] * (x[i] - mean - error) * inverse;
            db[i] += dy[i];
        }
    }
}

// With y = x * inverse * w: g = dy w, dx += inverse (g - x inverse^2 * mean of (g x)).
static float rms_norm_backward(float* dx, const float* dy, const float* x, const float* w,
                               int64_t n, float eps) {
    F squares = Vec::set(0.0f), projected = Vec::set(0.0f);
    const auto add = [&](F g, F x) {
        squares = Vec::fma(x, x, squares);
        projected = Vec::fma(g, x, projected);
    };
    int64_t i = 0;
    for (; i + W <= n; i += W) add(Vec::mul(Vec::load(dy + i), Vec::load(w + i)), Vec::load(x + i));
    if (i < n)  // past the end both are zero
        add(Vec::mul(load_part(dy + i, n - i), load_part(w + i, n - i)), load_part(x + i, n - i));
    const float count = static_cast<float>(n);
    const float inverse = 1.0f / __builtin_sqrtf(Vec::total(squares) / count + eps);
    const float factor = inverse * inverse * (Vec::total(projected) / count);
    for (int64_t j = 0; j < n; ++j) dx[j] += inverse * (dy[j] * w[j] - x[j] * factor);
    return inverse;
}

static void rms_norm_gradients(float* __restrict dw, const float* dy, const float* x,
                               const float* factors, int64_t count, int64_t stride, int64_t n) {
    for (int64_t t = 0; t < count; ++t, dy += stride, x += stride)
        for (int64_t i = 0; i < n; ++i) dw[i] += dy[i] * x[i] * factors[t];
}

static void add_rows(float* __restrict sums, const float* x, int64_t count, int64_t stride,
                     int64_t n) {
    for (int64_t t = 0; t < count; ++t, x += stride)
        for (int64_t i = 0; i < n; ++i) sums[i] += x[i];
}

static void scores_backward(float* __restrict ds, const float* p, float delta, float scale,
                            int64_t n) {
    for (int64_t i = 0; i < n; ++i) ds[i] = p[i] * (ds[i] - delta) * scale;
}

static double sum_of_squares(const float* x, int64_t n) {
    F sum = Vec::set(0.0f);
    int64_t i = 0;
    for (; i + W <= n; i += W) sum = Vec::fma(Vec::load(x + i), Vec::load(x + i), sum);
    if (i < n) sum = Vec::fma(load_part(x + i, n - i), load_part(x + i, n - i), sum);
    return Vec::total(sum);
}

static void adamw(float* p, float* m, float* v, const float* g, int64_t n, const AdamWFactors& by) {
    const F rise1 = Vec::set(1 - by.beta1), rise2 = Vec::set(1 - by.beta2);
    const auto step = [&](F& p, F& m, F& v, F g) {
        g = Vec::mul(g, Vec::set(by.gradient));
        m = Vec::fma(rise1, Vec::sub(g, m), m);
        v = Vec::fma(v, Vec::set(by.beta2), Vec::mul(rise2, Vec::mul(g, g)));
        const F root = Vec::fma(Vec::sqrt(v), Vec::set(by.root), Vec::set(by.eps));
        p = Vec::sub(Vec::mul(p, Vec::set(by.keep)),
                     Vec::div(Vec::mul(m, Vec::set(by.rate)), root));
    };
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        F pi = Vec::load(p + i), mi = Vec::load(m + i), vi = Vec::load(v + i);
        step(pi, mi, vi, Vec::load(g + i));
        Vec::store(p + i, pi);
        Vec::store(m + i, mi);
        Vec::store(v + i, vi);
    }
    if (i == n) return;
    F pi = load_part(p + i, n - i), mi = load_part(m + i, n - i), vi = load_part(v + i, n - i);
    step(pi, mi, vi, load_part(g + i, n - i));
    store_part(p + i, pi, n - i);
    store_part(m + i, mi, n - i);
    store_part(v + i, vi, n - i);
}
