// Attention of one query over a run of keys, written once over `Vec`.
#pragma once

template <class T>
static inline float dot(const float* query, const T* key, int64_t head) {
    F sum = Vec::set(0.0f);
    int64_t d = 0;
    for (; d + W <= head; d += W) sum = Vec::fma(Vec::load(key + d), Vec::load(query + d), sum);
    if (d < head) sum = Vec::fma(load_part(key + d, head - d), load_part(query + d, head - d), sum);
    return Vec::total(sum);
}

// Calls use(j, n, offset) for each piece of the run in one block: its keys from j, n of them, whose
// values begin at `offset`.
template <class Use>
static inline void for_pieces(const AttentionRun& run, const Use& use) {
    // One division a run: a block of 32 keys is soon done.
    const int32_t* block = run.blocks + run.first / run.block_size;
    int64_t row = run.first % run.block_size;
    for (int64_t j = 0; j < run.count; ++block, row = 0) {
        const int64_t left = run.count - j, room = run.block_size - row;
        const int64_t n = left < room ? left : room;
        use(j, n, *block * run.block_stride + row * run.head);
        j += n;
    }
}

// out[0 .. V * W) = sum of weights[j] * value j [column .. column + V * W)
template <class T, int V>
static inline void weigh_columns(float* out, const AttentionRun& run, int64_t column,
                                 const float* weights) {
    F sums[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sums[v] = Vec::set(0.0f);
    for_pieces(run, [&](int64_t first, int64_t n, int64_t offset) {
        const T* values = static_cast<const T*>(run.values) + offset + column;
        for (int64_t j = 0; j < n; ++j) {
            const F weight = Vec::set(weights[first + j]);
#pragma GCC unroll 8
            for (int v = 0; v < V; ++v)
                sums[v] = Vec::fma(weight, Vec::load(values + j * run.head + v * W), sums[v]);
        }
    });
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) Vec::store(out + v * W, sums[v]);
}

template <class T>
static void attend_to(AttentionSum& sum, const AttentionRun& run, float* scores) {
    for_pieces(run, [&](int64_t first, int64_t n, int64_t offset) {
        const T* keys = static_cast<const T*>(run.keys) + offset;
        for (int64_t j = 0; j < n; ++j)
            scores[first + j] = dot(run.query, keys + j * run.head, run.head);
    });
    if (run.soft_cap > 0) soft_cap(scores, run.count, run.scale, run.soft_cap);
    const float scale = run.soft_cap > 0 ? 1.0f : run.scale;
    sum.top = largest_of(scores, run.count) * scale;
    sum.total = softmax(scores, run.count, scale);
    int64_t d = 0;
    for (; d + 4 * W <= run.head; d += 4 * W) weigh_columns<T, 4>(sum.out + d, run, d, scores);
    for (; d + W <= run.head; d += W) weigh_columns<T, 1>(sum.out + d, run, d, scores);
    if (d == run.head) return;
    F rest = Vec::set(0.0f);
    for_pieces(run, [&](int64_t first, int64_t n, int64_t offset) {
        const T* values = static_cast<const T*>(run.values) + offset + d;
        for (int64_t j = 0; j < n; ++j)
            rest = Vec::fma(Vec::set(scores[first + j]),
                            load_part(values + j * run.head, run.head - d), rest);
    });
    store_part(sum.out + d, rest, run.head - d);
}

static void attend(AttentionSum& sum, const AttentionRun& run, float* scores) {
    if (run.dtype == Dtype::f16) return attend_to<f16_t>(sum, run, scores);
    if (run.dtype == Dtype::bf16) return attend_to<bf16_t>(sum, run, scores);
    attend_to<float>(sum, run, scores);
}

static inline float exp_of_one(float x) { return Vec::first(exp_of(Vec::set(x))); }

static void combine(AttentionSum& sum, const AttentionSum& run, int64_t head) {
    const float top = sum.top > run.top ? sum.top : run.top;
    const float old = exp_of_one(sum.top - top), fresh = exp_of_one(run.top - top);
    for (int64_t d = 0; d < head; ++d) sum.out[d] = sum.out[d] * old + run.out[d] * fresh;
    sum.total = sum.total * old + run.total * fresh;
    sum.top = top;
}
