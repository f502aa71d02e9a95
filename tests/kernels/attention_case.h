// Calls of attention() and what they give in double.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/ops.h"
#include "support/ops.h"

namespace hark::test {

// One call of attention with its inputs as the caches hold them.
struct AttentionCase {
    int64_t heads, kv_heads, size, capacity;
    std::vector<int32_t> queries, lengths;
    bool causal;
    Dtype cache = Dtype::f32;
    double largest = 1;  // deviation of q
    int64_t window = 0;
    float soft_cap = 0;
    bool sinks = false;  // those of sinks_of()
    int64_t few = 0;     // of the first sequences, one row each, which a GPU computes apart
    int bits = 32;
};

inline std::vector<float> sinks_of(const AttentionCase& c) { return random_values(c.heads, 77, 2); }

inline std::vector<int32_t> starts_of(const std::vector<int32_t>& queries) {
    std::vector<int32_t> starts = {0};
    for (const int32_t count : queries) starts.push_back(starts.back() + count);
    return starts;
}

// Slots in reverse order, so that slot and sequence are not the same number.
inline std::vector<int32_t> slots_of(const AttentionCase& c) {
    std::vector<int32_t> slots;
    for (size_t b = 0; b < c.queries.size(); ++b)
        slots.push_back(static_cast<int32_t>(c.queries.size() - 1 - b));
    return slots;
}

struct Inputs {
    std::vector<float> q, keys, values;
    int64_t width;  // of q's rows: columns of keys and values follow, as in a fused product

    Inputs(const AttentionCase& c, Dtype activations, uint64_t seed)
        : width((c.heads + 3) * c.size) {
        const int64_t rows = starts_of(c.queries).back();
        const int64_t cache = std::ssize(c.queries) * c.kv_heads * c.capacity * c.size;
        q = TestDevice::rounded(random_values(rows * width, seed, c.largest), activations);
        keys = TestDevice::rounded(random_values(cache, seed + 1), c.cache);
        values = TestDevice::rounded(random_values(cache, seed + 2), c.cache);
    }

    // NaN in all places after the sequences' lengths, which no result may depend on.
    void spoil_unused(const AttentionCase& c) {
        for (size_t b = 0; b < c.queries.size(); ++b)
            for (int64_t h = 0; h < c.kv_heads; ++h) {
                const int64_t slot = (slots_of(c)[b] * c.kv_heads + h) * c.capacity;
                for (auto* cache : {&keys, &values})
                    std::fill(cache->begin() + (slot + c.lengths[b]) * c.size,
                              cache->begin() + (slot + c.capacity) * c.size, NAN);
            }
    }
};

// One row of one head, in double.
inline void expect_row(std::vector<double>& out, const AttentionCase& c, const Inputs& in,
                       int64_t b, int64_t j, int64_t h) {
    const int64_t row = starts_of(c.queries)[b] + j, kv = h / (c.heads / c.kv_heads);
    const int64_t visible = c.causal ? c.lengths[b] - c.queries[b] + j + 1 : c.lengths[b];
    const int64_t place = (slots_of(c)[b] * c.kv_heads + kv) * c.capacity * c.size;
    const int64_t first = c.window > 0 ? std::max<int64_t>(0, visible - c.window) : 0;
    std::vector<double> scores;
    for (int64_t key = first; key < visible; ++key) {
        const double sum = dot(&in.q[row * in.width + h * c.size], &in.keys[place + key * c.size],
                               static_cast<size_t>(c.size)) /
                           std::sqrt(static_cast<double>(c.size));
        scores.push_back(c.soft_cap > 0 ? c.soft_cap * std::tanh(sum / c.soft_cap) : sum);
    }
    const double top = *std::max_element(scores.begin(), scores.end());
    double total = c.sinks ? std::exp(sinks_of(c)[static_cast<size_t>(h)] - top) : 0;
    for (double& score : scores) total += score = std::exp(score - top);
    double* of_head = &out[(row * c.heads + h) * c.size];
    std::fill_n(of_head, c.size, 0.0);
    for (int64_t key = first; key < visible; ++key)
        add_scaled(of_head, scores[key - first] / total, &in.values[place + key * c.size],
                   static_cast<size_t>(c.size));
}

inline std::vector<double> expected_of(const AttentionCase& c, const Inputs& in) {
    std::vector<double> out(starts_of(c.queries).back() * c.heads * c.size);
    for (int64_t b = 0; b < std::ssize(c.queries); ++b)
        for (int64_t j = 0; j < c.queries[b]; ++j)
            for (int64_t h = 0; h < c.heads; ++h) expect_row(out, c, in, b, j, h);
    return out;
}

inline BatchLayout ragged_of(TestDevice& device, const AttentionCase& c) {
    return {device.up(starts_of(c.queries)),
            device.up(slots_of(c)),
            device.up(c.lengths),
            *std::max_element(c.queries.begin(), c.queries.end()),
            *std::max_element(c.lengths.begin(), c.lengths.end()),
            false,
            c.few,
            1};
}

inline std::vector<float> run(TestDevice& device, const AttentionCase& c, const Inputs& in,
                              Dtype activations, bool kv_ready = false) {
    const Arena::Scope scope(device.ctx().arena);
    const int64_t rows = starts_of(c.queries).back(), slots = std::ssize(c.queries);
    Tensor out = device.empty(activations, {rows, c.heads * c.size});
    Tensor q = device.up(in.q, activations, {rows, in.width});
    Tensor keys = device.up(in.keys, c.cache, {slots, c.kv_heads, c.capacity, c.size});
    Tensor values = device.up(in.values, c.cache, {slots, c.kv_heads, c.capacity, c.size});
    BatchLayout ragged = ragged_of(device, c);
    ragged.kv_ready = kv_ready;
    attention(device.ctx(), out, q, keys, values, ragged,
              {.scale = 1 / std::sqrt(static_cast<float>(c.size)),
               .causal = c.causal,
               .window = c.window,
               .soft_cap = c.soft_cap,
               .sinks = c.sinks ? device.up(sinks_of(c), Dtype::f32, {c.heads}) : Tensor(),
               .bits = c.bits});
    return device.down(out);
}

}  // namespace hark::test
