// Products, written once over `Vec`: few rows directly from the stored weights, and blocks of
// attention over packed panels. Pragmas unroll the loops over registers: without them g++ 12 also
// keeps the sums in memory and stores all of them at every step.
#pragma once

template <int N>
using Constant = std::integral_constant<int, N>;

// A row of weights is read from begin to end: the hardware prefetches one long stream best. Sums of
// kChains vectors are kept apart, because an addition has to wait for the one before it.
constexpr int kChains = 2;

// Prefetches the lines of `bytes` bytes, kBytesAhead. The address may be past the weights: a
// prefetch does not fault.
template <int bytes>
static inline void prefetch_ahead(const void* from) {
    const auto place = reinterpret_cast<uintptr_t>(from) + uintptr_t{kBytesAhead};
#pragma GCC unroll 8
    for (int i = 0; i < bytes; i += 64)
        __builtin_prefetch(reinterpret_cast<const void*>(place + static_cast<uintptr_t>(i)), 0, 2);
}

// The sum of the chains, in one order.
static inline F join(const F (&sums)[kChains]) {
    static_assert(kChains == 2);
    return Vec::add(sums[0], sums[1]);
}

// R rows of weights times T rows of x. The order of a sum depends neither on R nor on T.
template <class Weight, int R, int T>
static inline void tile(float* y, int64_t ldy, const float* x, int64_t ldx, const Weight* w,
                        int64_t size) {
    F sums[R][T][kChains];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t)
#pragma GCC unroll 2
            for (int c = 0; c < kChains; ++c) sums[r][t][c] = Vec::set(0.0f);
    int64_t k = 0;
#pragma GCC unroll 2
    for (; k + kChains * W <= size; k += kChains * W) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r)
            prefetch_ahead<kChains * W* static_cast<int>(sizeof(Weight))>(w + r * size + k);
#pragma GCC unroll 2
        for (int c = 0; c < kChains; ++c) {
            F inputs[T];
#pragma GCC unroll 8
            for (int t = 0; t < T; ++t) inputs[t] = Vec::load(x + t * ldx + k + c * W);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                const F weights = Vec::load(w + r * size + k + c * W);
#pragma GCC unroll 8
                for (int t = 0; t < T; ++t)
                    sums[r][t][c] = Vec::fma(weights, inputs[t], sums[r][t][c]);
            }
        }
    }
    for (; k < size; k += W) {
        const int64_t n = std::min<int64_t>(size - k, W);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const F weights = n == W ? Vec::load(w + r * size + k) : load_part(w + r * size + k, n);
#pragma GCC unroll 8
            for (int t = 0; t < T; ++t) {
                const float* from = x + t * ldx + k;
                const F inputs = n == W ? Vec::load(from) : load_part(from, n);
                sums[r][t][0] = Vec::fma(weights, inputs, sums[r][t][0]);
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) y[t * ldy + r] = Vec::total(join(sums[r][t]));
}

// The same in integers, with exact sums: rows of x are padded with zeros to whole vectors.
template <int R, int T>
static inline void integer_tile(int32_t* y, int64_t ldy, const int16_t* x, int64_t ldx,
                                const int8_t* w, int64_t size) {
    using I = Vec::I;
    constexpr int N = Vec::kIntegers;
    I sums[R][T];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) sums[r][t] = Vec::zero_integers();
    int64_t k = 0;
    const auto add = [&](int r, const I& weights) {
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t)
            sums[r][t] =
                Vec::multiply_add(weights, Vec::load_integers(x + t * ldx + k), sums[r][t]);
    };
#pragma GCC unroll 4
    for (; k + N <= size; k += N)
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            prefetch_ahead<N>(w + r * size + k);
            add(r, Vec::load_integers(w + r * size + k));
        }
    if (k < size)
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            int8_t rest[N] = {};
            __builtin_memcpy(rest, w + r * size + k, static_cast<size_t>(size - k));
            add(r, Vec::load_integers(rest));
        }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) y[t * ldy + r] = Vec::total(sums[r][t]);
}

// Calls tile(t, inputs) for a few rows of x at a time, t the first of them: as many as the
// registers hold, at most four, then the rest. `inputs` is an integral constant. These rows of x
// stay in the first cache, a task's rows of weights in the second.
template <class Tile>
static inline void row_tiles(int64_t t_size, const Tile& tile) {
    constexpr int T = Vec::kRowsAtOnce;
    int64_t t = 0;
    for (; t + T <= t_size; t += T) tile(t, Constant<T>());
    if (t_size - t == 1) tile(t, Constant<1>());
    if (t_size - t == 2) tile(t, Constant<2>());
    if (t_size - t == 3) tile(t, Constant<3>());
}

template <class Weight, int R, int T>
static void rows_times(float* y, int64_t ldy, const float* x, int64_t ldx, const Weight* w,
                       int64_t size, int64_t count) {
    int64_t n = 0;
    for (; n + R <= count; n += R) tile<Weight, R, T>(y + n, ldy, x, ldx, w + n * size, size);
    for (; n < count; ++n) tile<Weight, 1, T>(y + n, ldy, x, ldx, w + n * size, size);
}

template <class Weight>
static void products_of(float* y, int64_t ldy, const float* x, int64_t ldx, int64_t t_size,
                        const Weight* w, int64_t size, int64_t count) {
    if (t_size == 1) return rows_times<Weight, 1, 1>(y, ldy, x, ldx, w, size, count);
    row_tiles(t_size, [&](int64_t t, auto inputs) {
        rows_times<Weight, Vec::kWeightRows, inputs.value>(y + t * ldy, ldy, x + t * ldx, ldx, w,
                                                           size, count);
    });
}

static void products(float* y, int64_t ldy, const float* x, int64_t ldx, int64_t t_size,
                     const StoredRows& w, int64_t begin, int64_t end) {
    const int64_t size = w.size, first = begin * size, count = end - begin;
    const void* data = w.values;
    if (w.dtype == Dtype::f16)
        return products_of(y, ldy, x, ldx, t_size, static_cast<const f16_t*>(data) + first, size,
                           count);
    if (w.dtype == Dtype::bf16)
        return products_of(y, ldy, x, ldx, t_size, static_cast<const bf16_t*>(data) + first, size,
                           count);
    products_of(y, ldy, x, ldx, t_size, static_cast<const float*>(data) + first, size, count);
}

template <int R, int T>
static void integer_rows_times(int32_t* y, int64_t ldy, const int16_t* x, int64_t ldx,
                               const int8_t* w, int64_t size, int64_t count) {
    int64_t n = 0;
    for (; n + R <= count; n += R) integer_tile<R, T>(y + n, ldy, x, ldx, w + n * size, size);
    for (; n < count; ++n) integer_tile<1, T>(y + n, ldy, x, ldx, w + n * size, size);
}

static void products_int8(int32_t* y, int64_t ldy, const int16_t* x, int64_t ldx, int64_t t_size,
                          const int8_t* w, int64_t size, int64_t count) {
    if (t_size == 1) return integer_rows_times<1, 1>(y, ldy, x, ldx, w, size, count);
    row_tiles(t_size, [&](int64_t t, auto inputs) {
        integer_rows_times<Vec::kWeightRows, inputs.value>(y + t * ldy, ldy, x + t * ldx, ldx, w,
                                                           size, count);
    });
}

constexpr int64_t kPanel = Vec::kPanelVectors * W;

template <class T>
static void pack_from(float* packed, const T* b, int64_t k_size, int64_t n_size) {
    for (int64_t n = 0; n < n_size; n += kPanel) {
        const int64_t width = n_size - n < kPanel ? n_size - n : kPanel;
        for (int64_t k = 0; k < k_size; ++k, packed += kPanel) {
            widen_from(packed, b + k * n_size + n, width);
            for (int64_t i = width; i < kPanel; ++i) packed[i] = 0;
        }
    }
}

static void pack(float* packed, const void* b, Dtype dtype, int64_t k, int64_t n) {
    if (dtype == Dtype::f16) return pack_from(packed, static_cast<const f16_t*>(b), k, n);
    if (dtype == Dtype::bf16) return pack_from(packed, static_cast<const bf16_t*>(b), k, n);
    pack_from(packed, static_cast<const float*>(b), k, n);
}

// Transposes W rows of W numbers. Each step moves the first bit of a number's row to the end of its
// column, and the first bit of its column to the end of its row.
static inline void transpose_square(F (&rows)[W]) {
#pragma GCC unroll 4
    for (int step = 1; step < W; step *= 2) {
        F from[W];
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) from[i] = rows[i];
#pragma GCC unroll 8
        for (int i = 0; i < W / 2; ++i)
            Vec::interleave(from[i], from[i + W / 2], rows[2 * i], rows[2 * i + 1]);
    }
}

// W columns of W rows of b (n_size, k_size), or of those there are and zeros.
template <class T>
static inline void take_square(F (&rows)[W], const T* b, int64_t ldb, int64_t k_size,
                               int64_t n_size) {
    if (k_size >= W && n_size >= W) {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) rows[i] = Vec::load(b + i * ldb);
        return;
    }
    for (int64_t i = 0; i < W; ++i) {
        float row[W] = {};
        if (i < n_size) widen_from(row, b + i * ldb, k_size < W ? k_size : W);
        rows[i] = Vec::load(row);
    }
}

template <class T>
static void pack_transposed_from(float* packed, const T* b, int64_t ldb, int64_t k_size,
                                 int64_t n_size) {
    constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
    const int64_t panels = (n_size + kPanel - 1) / kPanel;
    for (int64_t n = 0; n < panels * kPanel; n += W) {
        float* to = packed + n / kPanel * kPanel * k_size + n % kPanel;
        for (int64_t k = 0; k < k_size; k += W) {
            const T* from = b + n * ldb + k;
            if (k % kLine == 0)
                for (int64_t i = 0; i < W; ++i) __builtin_prefetch(from + (kPanel + i) * ldb, 0, 2);
            F rows[W];
            take_square(rows, from, ldb, k_size - k, n_size - n);
            transpose_square(rows);
            const int64_t width = k_size - k < W ? k_size - k : W;
#pragma GCC unroll 16
            for (int64_t j = 0; j < W; ++j)
                if (j < width) Vec::store(to + (k + j) * kPanel, rows[j]);
        }
    }
}

static void pack_transposed(float* packed, const void* b, int64_t ldb, Dtype dtype, int64_t k,
                            int64_t n) {
    if (dtype == Dtype::f16)
        return pack_transposed_from(packed, static_cast<const f16_t*>(b), ldb, k, n);
    if (dtype == Dtype::bf16)
        return pack_transposed_from(packed, static_cast<const bf16_t*>(b), ldb, k, n);
    pack_transposed_from(packed, static_cast<const float*>(b), ldb, k, n);
}

// M rows of a times one panel: M * kPanelVectors accumulators stay in registers. Adds to c if
// `adds`.
template <int M>
static inline void panel_tile(float* c, int64_t ldc, const float* a, int64_t lda,
                              const float* panel, int64_t k_size, bool adds) {
    constexpr int V = Vec::kPanelVectors;
    F sums[M][V];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) sums[m][v] = Vec::set(0.0f);
    for (int64_t k = 0; k < k_size; ++k) {
        F columns[V];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) columns[v] = Vec::load(panel + k * kPanel + v * W);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
            const F factor = Vec::set(a[m * lda + k]);
#pragma GCC unroll 8
            for (int v = 0; v < V; ++v) sums[m][v] = Vec::fma(factor, columns[v], sums[m][v]);
        }
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) {
            float* to = c + m * ldc + v * W;
            Vec::store(to, adds ? Vec::add(Vec::load(to), sums[m][v]) : sums[m][v]);
        }
}

// Sums over more terms than this are sums of sums: a chain of 1500 has over twice the error.
constexpr int64_t kTermsInChain = 256;

template <int M>
static inline void panel_rows(float* c, int64_t ldc, const float* a, int64_t lda,
                              const float* panel, int64_t k_size, bool adds) {
    int64_t k = 0;
    do {
        const int64_t terms = k_size - k < kTermsInChain ? k_size - k : kTermsInChain;
        panel_tile<M>(c, ldc, a + k, lda, panel + k * kPanel, terms, adds || k > 0);
        k += terms;
    } while (k < k_size);
}

static void multiply_packed(float* c, int64_t ldc, const float* a, int64_t lda, const float* packed,
                            int64_t m_size, int64_t n_size, int64_t k_size, int64_t packed_k,
                            bool adds) {
    constexpr int M = Vec::kPanelRows;
    for (int64_t n = 0; n < n_size; n += kPanel, packed += kPanel * packed_k) {
        int64_t m = 0;
        const auto rows = [&](auto count) {
            panel_rows<count.value>(c + m * ldc + n, ldc, a + m * lda, lda, packed, k_size, adds);
            m += count.value;
        };
        while (m + M <= m_size) rows(Constant<M>());
        if (m + 4 <= m_size) rows(Constant<4>());
        if (m + 2 <= m_size) rows(Constant<2>());
        if (m < m_size) rows(Constant<1>());
    }
}
