// Element-wise loops and reductions over one row, written once over the vector type `Vec` of the
// including file. All are static: the same names are compiled for other processors.
#pragma once

using F = Vec::F;
constexpr int64_t W = Vec::kWidth;

// Loads the first n < W values; the others are zero.
template <class T>
static inline F load_part(const T* from, int64_t n) {
    T values[W] = {};
    __builtin_memcpy(values, from, static_cast<size_t>(n) * sizeof(T));
    return Vec::load(values);
}

static inline void store_part(float* to, F x, int64_t n) {
    float values[W];
    Vec::store(values, x);
    __builtin_memcpy(to, values, static_cast<size_t>(n) * sizeof(float));
}

// exp(x), 2 units in the last place; 0 below -87.3 and no more than 3.4e38 above 88.3.
// 2^n * p(r), r = x - n ln 2; p interpolates exp at the Chebyshev points of [-ln 2 / 2, ln 2 / 2].
static inline F exp_of(F x) {
    const F clamped = Vec::min(Vec::max(x, Vec::set(-87.3f)), Vec::set(88.3f));
    const F n = Vec::round(Vec::mul(clamped, Vec::set(1.44269504f)));
    F r = Vec::fma(n, Vec::set(-0.693359375f), clamped);
    r = Vec::fma(n, Vec::set(2.12194440e-4f), r);
    F p = Vec::set(0.0013941213f);
    p = Vec::fma(p, r, Vec::set(0.0083752098f));
    p = Vec::fma(p, r, Vec::set(0.041666351f));
    p = Vec::fma(p, r, Vec::set(0.16666414f));
    p = Vec::fma(p, r, Vec::set(0.5f));
    p = Vec::fma(p, r, Vec::set(1.0f));
    p = Vec::fma(p, r, Vec::set(1.0f));
    return Vec::where_below(x, Vec::set(-87.3f), Vec::set(0.0f), Vec::mul(p, Vec::power_of_2(n)));
}

// P(X > |x|) with the exact normal distribution, erfc(|x| / sqrt 2) / 2. erfc(z) = t q(t)
// exp(-z^2), t = 1 / (1 + 0.43 z) (the form of Abramowitz and Stegun 7.1.26); q fits within 1.3e-7.
static inline F tail_of(F x) {
    const F size = Vec::max(x, Vec::sub(Vec::set(0.0f), x));
    const F one = Vec::set(1.0f);
    const F t = Vec::reciprocal(Vec::fma(size, Vec::set(0.43f * 0.70710678f), one));
    F q = Vec::set(0.07313340902328491f);
    q = Vec::fma(q, t, Vec::set(-0.3081280589103699f));
    q = Vec::fma(q, t, Vec::set(0.38011136651039124f));
    q = Vec::fma(q, t, Vec::set(-0.08268729597330093f));
    q = Vec::fma(q, t, Vec::set(0.24538810551166534f));
    q = Vec::fma(q, t, Vec::set(0.2053445428609848f));
    q = Vec::fma(q, t, Vec::set(0.24432027339935303f));
    q = Vec::fma(q, t, Vec::set(0.24251769483089447f));
    const F e = exp_of(Vec::mul(Vec::mul(x, x), Vec::set(-0.5f)));
    return Vec::mul(Vec::mul(Vec::mul(q, t), e), Vec::set(0.5f));
}

// x * P(X <= x): x - h for x >= 0 and -h below, h = |x| P(X > |x|). Its error is below 1e-6.
static inline F gelu_of(F x) {
    const F zero = Vec::set(0.0f);
    const F h = Vec::mul(tail_of(x), Vec::max(x, Vec::sub(zero, x)));
    return Vec::where_below(x, zero, Vec::sub(zero, h), Vec::sub(x, h));
}

// x (1 + tanh(u)) / 2 = x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3): GPT-2's.
static inline F gelu_tanh_of(F x) {
    const F cubic = Vec::fma(Vec::mul(Vec::mul(x, x), x), Vec::set(0.044715f), x);
    const F e = exp_of(Vec::mul(cubic, Vec::set(-2.0f * 0.79788456f)));
    return Vec::div(x, Vec::add(Vec::set(1.0f), e));
}

static inline F silu_of(F x) {
    return Vec::div(x, Vec::add(Vec::set(1.0f), exp_of(Vec::sub(Vec::set(0.0f), x))));
}

template <Activation activation>
static inline F activated(F x) {
    if constexpr (activation == Activation::silu) return silu_of(x);
    if constexpr (activation == Activation::gelu) return gelu_of(x);
    if constexpr (activation == Activation::gelu_tanh) return gelu_tanh_of(x);
    return x;
}

template <Activation activation>
static void epilogue_of(float* y, const float* product, const float* bias, const float* residual,
                        int64_t n) {
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        F v = Vec::load(product + i);
        if (bias) v = Vec::add(v, Vec::load(bias + i));
        v = activated<activation>(v);
        if (residual) v = Vec::add(Vec::load(residual + i), v);
        Vec::store(y + i, v);
    }
    if (i == n) return;
    F v = load_part(product + i, n - i);
    if (bias) v = Vec::add(v, load_part(bias + i, n - i));
    v = activated<activation>(v);
    if (residual) v = Vec::add(load_part(residual + i, n - i), v);
    store_part(y + i, v, n - i);
}

static void epilogue(float* y, const float* product, const float* bias, const float* residual,
                     int64_t n, Activation activation) {
    switch (activation) {
        case Activation::none:
            return epilogue_of<Activation::none>(y, product, bias, residual, n);
        case Activation::gelu:
            return epilogue_of<Activation::gelu>(y, product, bias, residual, n);
        case Activation::gelu_tanh:
            return epilogue_of<Activation::gelu_tanh>(y, product, bias, residual, n);
        case Activation::silu:
            return epilogue_of<Activation::silu>(y, product, bias, residual, n);
    }
}

template <Activation activation>
static void gated_of(float* y, const float* gate, const float* up, int64_t n) {
    int64_t i = 0;
    for (; i + W <= n; i += W)
        Vec::store(y + i, Vec::mul(activated<activation>(Vec::load(gate + i)), Vec::load(up + i)));
    if (i == n) return;
    const F v = activated<activation>(load_part(gate + i, n - i));
    store_part(y + i, Vec::mul(v, load_part(up + i, n - i)), n - i);
}

static void gated(float* y, const float* gate, const float* up, int64_t n, Activation activation) {
    if (activation == Activation::silu) return gated_of<Activation::silu>(y, gate, up, n);
    if (activation == Activation::gelu) return gated_of<Activation::gelu>(y, gate, up, n);
    gated_of<Activation::gelu_tanh>(y, gate, up, n);
}

template <class T>
static void widen_from(float* to, const T* from, int64_t n) {
    int64_t i = 0;
    for (; i + W <= n; i += W) Vec::store(to + i, Vec::load(from + i));
    if (i < n) store_part(to + i, load_part(from + i, n - i), n - i);
}

static void widen(float* to, const void* from, Dtype dtype, int64_t n) {
    if (dtype == Dtype::f16) return widen_from(to, static_cast<const f16_t*>(from), n);
    if (dtype == Dtype::bf16) return widen_from(to, static_cast<const bf16_t*>(from), n);
    widen_from(to, static_cast<const float*>(from), n);
}

static void widen_int8(float* to, const int8_t* from, float scale, int64_t n) {
    const F factor = Vec::set(scale);
    int64_t i = 0;
    for (; i + W <= n; i += W) Vec::store(to + i, Vec::mul(Vec::load(from + i), factor));
    if (i < n) store_part(to + i, Vec::mul(load_part(from + i, n - i), factor), n - i);
}

template <class T>
static void narrow_to(T* to, const float* from, int64_t n) {
    int64_t i = 0;
    for (; i + W <= n; i += W) Vec::store(to + i, Vec::load(from + i));
    if (i == n) return;
    T values[W];
    Vec::store(values, load_part(from + i, n - i));
    __builtin_memcpy(to + i, values, static_cast<size_t>(n - i) * sizeof(T));
}

static void narrow(void* to, Dtype dtype, const float* from, int64_t n) {
    if (dtype == Dtype::f16) return narrow_to(static_cast<f16_t*>(to), from, n);
    if (dtype == Dtype::bf16) return narrow_to(static_cast<bf16_t*>(to), from, n);
    narrow_to(static_cast<float*>(to), from, n);
}

// to[i] = from[i] / factor, rounded; the largest becomes `range`. Returns the factor, or NaN if a
// value is not finite.
template <class Integer>
static float quantize_to(Integer* to, const float* from, int64_t n, float range) {
    const F zero = Vec::set(0.0f);
    F top = zero, nothing = zero;  // a sum of zeros, unless a value is not finite
    const auto look_at = [&](F v) {
        top = Vec::max(top, Vec::max(v, Vec::sub(zero, v)));
        nothing = Vec::add(nothing, Vec::mul(v, zero));
    };
    int64_t i = 0;
    for (; i + W <= n; i += W) look_at(Vec::load(from + i));
    if (i < n) look_at(load_part(from + i, n - i));
    float lanes[W];
    Vec::store(lanes, nothing);
    for (int64_t lane = 1; lane < W; ++lane) lanes[0] += lanes[lane];
    if (lanes[0] != 0) {
        for (i = 0; i < n; ++i) to[i] = 0;
        return lanes[0];
    }
    const float largest = Vec::maximum(top);
    const F inverse = Vec::set(largest > 1e-30f ? range / largest : 0.0f);
    for (i = 0; i < n; i += W) {
        float rounded[W];
        const int64_t count = n - i < W ? n - i : W;
        const F v = count == W ? Vec::load(from + i) : load_part(from + i, count);
        Vec::store(rounded, Vec::round(Vec::mul(v, inverse)));
        for (int64_t j = 0; j < count; ++j) to[i + j] = static_cast<Integer>(rounded[j]);
    }
    return largest / range;
}

static float quantize(int8_t* to, const float* from, int64_t n) {
    return quantize_to(to, from, n, 127.0f);
}

static float quantize_wide(int16_t* to, const float* from, int64_t n, int32_t range) {
    return quantize_to(to, from, n, static_cast<float>(range));
}

static void finish_int8(float* y, const int32_t* sums, float scale, const float* scales,
                        const float* bias, const float* residual, int64_t n,
                        Activation activation) {
    constexpr int64_t kAtOnce = 128;
    float product[kAtOnce];
    for (int64_t i = 0; i < n; i += kAtOnce) {
        const int64_t count = n - i < kAtOnce ? n - i : kAtOnce;
        for (int64_t j = 0; j < count; ++j)
            product[j] = static_cast<float>(sums[i + j]) * (scale * scales[i + j]);
        epilogue(y + i, product, bias ? bias + i : nullptr, residual ? residual + i : nullptr,
                 count, activation);
    }
}

static inline F sum_of(const float* x, int64_t n) {
    F sum = Vec::set(0.0f);
    int64_t i = 0;
    for (; i + W <= n; i += W) sum = Vec::add(sum, Vec::load(x + i));
    return i < n ? Vec::add(sum, load_part(x + i, n - i)) : sum;
}

// The variance is taken around a first mean. That mean's error matters if the mean is much larger
// than the deviation; it is found from the small differences and removed.
static NormStatistics statistics_of(const float* x, int64_t n, float eps) {
    const float count = static_cast<float>(n);
    const F center = Vec::set(Vec::total(sum_of(x, n)) / count);
    F sum = Vec::set(0.0f), squares = Vec::set(0.0f);
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        const F d = Vec::sub(Vec::load(x + i), center);
        sum = Vec::add(sum, d);
        squares = Vec::fma(d, d, squares);
    }
    float rest = 0, rest_squares = 0;
    for (int64_t j = i; j < n; ++j) {
        const float d = x[j] - Vec::first(center);
        rest += d;
        rest_squares += d * d;
    }
    const float error = (Vec::total(sum) + rest) / count;
    const float variance = (Vec::total(squares) + rest_squares) / count - error * error;
    return {Vec::first(center), error, 1.0f / __builtin_sqrtf((variance > 0 ? variance : 0) + eps)};
}

static void layer_norm(float* y, const float* x, const float* w, const float* b, int64_t n,
                       float eps) {
    const auto [mean, error, inverse] = statistics_of(x, n, eps);
    const F center = Vec::set(mean), scale = Vec::set(inverse), shift = Vec::set(error);
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        const F d = Vec::sub(Vec::sub(Vec::load(x + i), center), shift);
        Vec::store(y + i, Vec::fma(Vec::mul(d, scale), Vec::load(w + i), Vec::load(b + i)));
    }
    for (; i < n; ++i) y[i] = (x[i] - mean - error) * inverse * w[i] + b[i];
}

static void rms_norm(float* y, const float* x, const float* w, int64_t n, float eps) {
    F squares = Vec::set(0.0f);
    int64_t i = 0;
    for (; i + W <= n; i += W) squares = Vec::fma(Vec::load(x + i), Vec::load(x + i), squares);
    if (i < n) squares = Vec::fma(load_part(x + i, n - i), load_part(x + i, n - i), squares);
    const float mean = Vec::total(squares) / static_cast<float>(n);
    const float factor = 1.0f / __builtin_sqrtf(mean + eps);
    const F scale = Vec::set(factor);
    for (i = 0; i + W <= n; i += W)
        Vec::store(y + i, Vec::mul(Vec::mul(Vec::load(x + i), scale), Vec::load(w + i)));
    for (; i < n; ++i) y[i] = x[i] * factor * w[i];
}

static void add(float* y, const float* a, const float* b, int64_t n) {
    int64_t i = 0;
    for (; i + W <= n; i += W) Vec::store(y + i, Vec::add(Vec::load(a + i), Vec::load(b + i)));
    for (; i < n; ++i) y[i] = a[i] + b[i];
}

static void multiply(float* y, const float* x, float factor, int64_t n) {
    const F f = Vec::set(factor);
    int64_t i = 0;
    for (; i + W <= n; i += W) Vec::store(y + i, Vec::mul(Vec::load(x + i), f));
    for (; i < n; ++i) y[i] = x[i] * factor;
}

static float largest_of(const float* x, int64_t n) {
    F top = Vec::set(x[0]);
    int64_t i = 0;
    for (; i + W <= n; i += W) top = Vec::max(top, Vec::load(x + i));
    float largest = Vec::maximum(top);
    for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
    return largest;
}

static float softmax(float* x, int64_t n, float scale) {
    const F shift = Vec::set(largest_of(x, n)), factor = Vec::set(scale);
    F sum = Vec::set(0.0f);
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        const F e = exp_of(Vec::mul(Vec::sub(Vec::load(x + i), shift), factor));
        Vec::store(x + i, e);
        sum = Vec::add(sum, e);
    }
    float total = Vec::total(sum);
    if (i == n) return total;
    float rest[W];
    Vec::store(rest, exp_of(Vec::mul(Vec::sub(load_part(x + i, n - i), shift), factor)));
    for (int64_t j = 0; i + j < n; ++j) total += x[i + j] = rest[j];
    return total;
}

static void soft_cap(float* x, int64_t n, float scale, float cap) {
    const float inner = scale / cap;
    for (int64_t i = 0; i < n; ++i) x[i] = cap * __builtin_tanhf(x[i] * inner);
}

static double log_sum_exp(const float* x, int64_t n) {
    const float top = n > 0 ? largest_of(x, n) : -__builtin_inff();
    if (top == -__builtin_inff()) return top;
    const F shift = Vec::set(top);
    double sum = 0;
    // Values per sum in float; these are added in double, for a vocabulary's tail of small terms.
    constexpr int64_t kAtOnce = 512;
    for (int64_t begin = 0; begin < n; begin += kAtOnce) {
        const int64_t end = n - begin < kAtOnce ? n : begin + kAtOnce;
        F part = Vec::set(0.0f);
        int64_t i = begin;
        for (; i + W <= end; i += W)
            part = Vec::add(part, exp_of(Vec::sub(Vec::load(x + i), shift)));
        sum += Vec::total(part);
        if (i == end) continue;
        float rest[W];
        Vec::store(rest, exp_of(Vec::sub(load_part(x + i, end - i), shift)));
        for (int64_t j = 0; i + j < end; ++j) sum += rest[j];
    }
    return top + __builtin_log(sum);
}
