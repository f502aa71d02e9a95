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

// out[0 .. V * W) = sum of weights[j] * values[j][0 .. V * W)
template <class T, int V>
static inline void weigh_columns(float* out, const T* values, const float* weights, int64_t count,
                                 int64_t head) {
    F sums[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sums[v] = Vec::set(0.0f);
    for (int64_t j = 0; j < count; ++j) {
        const F weight = Vec::set(weights[j]);
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v)
            sums[v] = Vec::fma(weight, Vec::load(values + j * head + v * W), sums[v]);
    }
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) Vec::store(out + v * W, sums[v]);
}

template <class T>
static void attend_to(AttentionSum& sum, const AttentionRun& run, float* scores) {
    const T* keys = static_cast<const T*>(run.keys);
    const T* values = static_cast<const T*>(run.values);
    for (int64_t j = 0; j < run.count; ++j)
        scores[j] = dot(run.query, keys + j * run.head, run.head);
    sum.top = largest_of(scores, run.count) * run.scale;
    sum.total = softmax(scores, run.count, run.scale);
    int64_t d = 0;
    for (; d + 4 * W <= run.head; d += 4 * W)
        weigh_columns<T, 4>(sum.out + d, values + d, scores, run.count, run.head);
    for (; d + W <= run.head; d += W)
        weigh_columns<T, 1>(sum.out + d, values + d, scores, run.count, run.head);
    if (d == run.head) return;
    F rest = Vec::set(0.0f);
    for (int64_t j = 0; j < run.count; ++j)
        rest =
            Vec::fma(Vec::set(scores[j]), load_part(values + j * run.head + d, run.head - d), rest);
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
