// The checks of caches, rotary positions and attention.
#include <algorithm>
#include <cmath>

#include "operations/doctor/kernels/kernel_case.h"

namespace hark::doctor {
namespace {

// Two sequences of one and three rows, with five and seven keys in the slots 1 and 0.
constexpr int64_t kRows = 4, kSlots = 2, kCapacity = 8;
constexpr size_t kStart[] = {0, 1, 4}, kSlot[] = {1, 0}, kLength[] = {5, 7};

BatchLayout layout(KernelCase& on) {
    return {.query_start = on.ids({0, 1, 4}),
            .block_table = on.ids({1, 0}),
            .length = on.ids({5, 7}),
            .max_queries = 3,
            .max_length = 7};
}

// Calls body(row, sequence, position of the row's key in its sequence).
template <class Body>
void each_row(const Body& body) {
    for (size_t b = 0; b < 2; ++b)
        for (size_t t = kStart[b]; t < kStart[b + 1]; ++t)
            body(t, b, kLength[b] - (kStart[b + 1] - t));
}

// Where a cache (slots, heads, capacity, D) has channel 0 of a key.
size_t cache_at(size_t slot, size_t head, size_t heads, size_t position, size_t d) {
    return ((slot * heads + head) * kCapacity + position) * d;
}

// Softmax of the scores; `sink`: a further logit, whose share is dropped.
Numbers shares(Numbers scores, const double* sink) {
    double most = *std::max_element(scores.begin(), scores.end());
    if (sink) most = std::max(most, *sink);
    double sum = sink ? std::exp(*sink - most) : 0;
    for (double& score : scores) sum += score = std::exp(score - most);
    for (double& score : scores) score /= sum;
    return scores;
}

struct AttentionCase {
    size_t heads, kv_heads, d;
    double scale = 1, soft_cap = 0;
    bool causal = false;
    size_t window = 0;
    const Numbers* sinks = nullptr;
};

Numbers attended(const AttentionCase& of, const Numbers& q, const Numbers& keys,
                 const Numbers& values) {
    Numbers out(static_cast<size_t>(kRows) * of.heads * of.d);
    each_row([&](size_t t, size_t b, size_t position) {
        const size_t end = of.causal ? position + 1 : kLength[b];
        const size_t begin = of.window > 0 && end > of.window ? end - of.window : 0;
        for (size_t h = 0; h < of.heads; ++h) {
            const size_t head = h / (of.heads / of.kv_heads), to = (t * of.heads + h) * of.d;
            const auto key_at = [&](size_t p) {
                return cache_at(kSlot[b], head, of.kv_heads, p, of.d);
            };
            Numbers scores;
            for (size_t p = begin; p < end; ++p) {
                double score = 0;
                for (size_t i = 0; i < of.d; ++i) score += q[to + i] * keys[key_at(p) + i];
                score *= of.scale;
                scores.push_back(of.soft_cap > 0 ? of.soft_cap * std::tanh(score / of.soft_cap)
                                                 : score);
            }
            scores = shares(std::move(scores), of.sinks ? &(*of.sinks)[h] : nullptr);
            for (size_t p = begin; p < end; ++p)
                for (size_t i = 0; i < of.d; ++i)
                    out[to + i] += scores[p - begin] * values[key_at(p) + i];
        }
    });
    return out;
}

// Turns channels of x: i with i + R / 2, or 2 i with 2 i + 1.
void turn(double* x, const Numbers& frequencies, double position, double scale, bool neighbours) {
    const size_t half = frequencies.size();
    for (size_t i = 0; i < half; ++i) {
        double &a = x[neighbours ? 2 * i : i], &b = x[neighbours ? 2 * i + 1 : i + half];
        const double angle = position * frequencies[i];
        const double c = scale * std::cos(angle), s = scale * std::sin(angle), before = a;
        a = before * c - b * s;
        b = b * c + before * s;
    }
}

Operand frequencies_of(KernelCase& on, int64_t half) {
    Numbers frequencies;
    for (int64_t i = 0; i < half; ++i)
        frequencies.push_back(std::pow(100.0, -static_cast<double>(i) / static_cast<double>(half)));
    return on.up(frequencies, Dtype::f32, {half});
}

const std::vector<int32_t> kPositions = {4, 4, 5, 6};

// A row's channels from `first`, without weights of a norm.
void norm_in_place(double* x, size_t n, const Numbers& weight, double eps) {
    const Numbers scaled = normalized(Numbers(x, x + n), static_cast<int64_t>(n), eps, false);
    for (size_t i = 0; i < n; ++i) x[i] = scaled[i] * weight[i];
}

// Rows of two query heads and one head of keys before norms and the rope, and caches.
struct RopeCase {
    static constexpr size_t kHeads = 2, kD = 64, kWidth = (kHeads + 2) * kD;
    static constexpr double kEps = 1e-5;
    Operand x, frequencies, q_weight, k_weight, keys, values;
    Columns q, k, v;
    Tensor position;
    Rope rope;
    Norm q_norm, k_norm;

    explicit RopeCase(KernelCase& on)
        : x(on.random({kRows, kWidth})),
          frequencies(frequencies_of(on, kD / 2)),
          q_weight(on.random(Dtype::f32, {kD})),
          k_weight(on.random(Dtype::f32, {kD})),
          keys(on.random({kSlots, 1, kCapacity, kD})),
          values(on.random({kSlots, 1, kCapacity, kD})),
          q{x.tensor, 0},
          k{x.tensor, kHeads * kD},
          v{x.tensor, (kHeads + 1) * kD},
          position(on.ids(kPositions)),
          rope{frequencies.tensor, 1.5f},
          q_norm{q_weight.tensor, {}, static_cast<float>(kEps), NormKind::rms},
          k_norm{k_weight.tensor, {}, static_cast<float>(kEps), NormKind::rms} {}

    // The queries (rows, heads, D), and the caches with the rows' keys and values.
    struct Turned {
        Numbers q, keys, values;
    };
    Turned turned() const {
        Turned to{{}, keys.values, values.values};
        Numbers rows = x.values;
        each_row([&](size_t t, size_t b, size_t position) {
            double* const row = rows.data() + t * kWidth;
            for (size_t h = 0; h <= kHeads; ++h) {
                norm_in_place(row + h * kD, kD, h < kHeads ? q_weight.values : k_weight.values,
                              kEps);
                turn(row + h * kD, frequencies.values, kPositions[t], 1.5, false);
            }
            to.q.insert(to.q.end(), row, row + kHeads * kD);
            const size_t at = cache_at(kSlot[b], 0, 1, position, kD);
            std::copy_n(row + kHeads * kD, kD, to.keys.data() + at);
            std::copy_n(row + (kHeads + 1) * kD, kD, to.values.data() + at);
        });
        return to;
    }
};

// out and lse of self-attention of packed rows, each to the keys [first, end); lse may be none.
Numbers self_attended(const Numbers& qkv, size_t heads, size_t kv_heads, size_t d,
                      const std::vector<int32_t>& first, const std::vector<int32_t>& end,
                      Numbers* lse) {
    const size_t width = (heads + 2 * kv_heads) * d, rows = qkv.size() / width;
    Numbers out(rows * heads * d);
    for (size_t t = 0; t < rows; ++t)
        for (size_t h = 0; h < heads; ++h) {
            const size_t kv = h / (heads / kv_heads), begin = static_cast<size_t>(first[t]);
            const auto last = static_cast<size_t>(end[t]);
            const auto key = [&](size_t p) { return p * width + (heads + kv) * d; };
            Numbers scores;
            for (size_t p = begin; p < last; ++p) {
                double score = 0;
                for (size_t i = 0; i < d; ++i)
                    score += qkv[t * width + h * d + i] * qkv[key(p) + i];
                scores.push_back(score / std::sqrt(static_cast<double>(d)));
            }
            if (lse) {
                double sum = 0;
                for (const double score : scores) sum += std::exp(score);
                lse->push_back(std::log(sum));
            }
            const Numbers weights = shares(scores, nullptr);
            for (size_t p = begin; p < last; ++p)
                for (size_t i = 0; i < d; ++i)
                    out[(t * heads + h) * d + i] +=
                        weights[p - begin] * qkv[key(p) + kv_heads * d + i];
        }
    return out;
}

const std::vector<int32_t> kFirst = {0, 0, 2, 2, 2, 2}, kEnd = {2, 2, 6, 6, 6, 6},
                           kSeen = {1, 2, 3, 4, 5, 6};  // the end of a row's own keys

}  // namespace

void check_append_cache(KernelCase& on) {
    constexpr size_t kHeads = 2, kD = 64, kWidth = 2 * kHeads * kD;
    const Operand x = on.random({kRows, kWidth});
    const Tensor keys = on.zeros({kSlots, kHeads, kCapacity, kD}),
                 values = on.zeros({kSlots, kHeads, kCapacity, kD});
    append_cache(on.ctx(), keys, values, x.tensor, 0, layout(on));
    Numbers of_keys(static_cast<size_t>(keys.size())), of_values(of_keys.size());
    each_row([&](size_t t, size_t b, size_t position) {
        for (size_t h = 0; h < kHeads; ++h)
            for (size_t i = 0; i < kD; ++i) {
                const size_t at = cache_at(kSlot[b], h, kHeads, position, kD) + i;
                of_keys[at] = x.values[t * kWidth + h * kD + i];
                of_values[at] = x.values[t * kWidth + (kHeads + h) * kD + i];
            }
    });
    on.expect(keys, of_keys);
    on.expect(values, of_values);
}

void check_rope_append(KernelCase& on) {
    const RopeCase in(on);
    rope_append(on.ctx(), in.keys.tensor, in.values.tensor, in.q, in.k, in.v, RopeCase::kHeads,
                in.position, in.rope, in.q_norm, in.k_norm, layout(on));
    const RopeCase::Turned expected = in.turned();
    const Numbers found = on.down(in.x.tensor);
    Numbers of_q;
    for (size_t t = 0; t < static_cast<size_t>(kRows); ++t) {
        const auto row = found.begin() + static_cast<std::ptrdiff_t>(t * RopeCase::kWidth);
        of_q.insert(of_q.end(), row, row + RopeCase::kHeads * RopeCase::kD);
    }
    on.expect(of_q, expected.q, 2, on.activations());
    on.expect(in.keys.tensor, expected.keys, 2);
    on.expect(in.values.tensor, expected.values, 2);
}

// The sequence of one row apart from the other, since a GPU has a kernel for it.
void check_rope_attention(KernelCase& on) {
    const RopeCase in(on);
    BatchLayout rows = layout(on);
    rows.few = rows.few_queries = 1;
    const Tensor out = on.zeros({kRows, RopeCase::kHeads * RopeCase::kD});
    rope_attention(on.ctx(), out, in.keys.tensor, in.values.tensor, in.q, in.k, in.v, in.position,
                   in.rope, in.q_norm, in.k_norm, rows, {.scale = 0.125f, .causal = true});
    const RopeCase::Turned expected = in.turned();
    const AttentionCase of{RopeCase::kHeads, 1, RopeCase::kD, 0.125, 0, true};
    on.expect(out, attended(of, expected.q, expected.keys, expected.values), 4);
    on.expect(in.keys.tensor, expected.keys, 2);
    on.expect(in.values.tensor, expected.values, 2);
}

void check_copy_cache(KernelCase& on) {
    constexpr size_t kHeads = 2, kD = 64, kKept = 5;
    const Operand cache = on.random({kSlots, kHeads, kCapacity, kD});
    copy_cache(on.ctx(), cache.tensor, on.ids({1, 0}), on.ids({0, 1}), kKept);
    Numbers expected = cache.values;
    for (size_t slot = 0; slot < 2; ++slot)
        for (size_t h = 0; h < kHeads; ++h)
            for (size_t i = 0; i < kKept * kD; ++i)
                expected[cache_at(slot, h, kHeads, 0, kD) + i] =
                    cache.values[cache_at(1 - slot, h, kHeads, 0, kD) + i];
    on.expect(cache.tensor, expected);
}

void check_attention(KernelCase& on) {
    constexpr int64_t kHeads = 4, kKvHeads = 2, kD = 64;
    const Operand q = on.random({kRows, kHeads * kD}),
                  keys = on.random({kSlots, kKvHeads, kCapacity, kD}),
                  values = on.random({kSlots, kKvHeads, kCapacity, kD}),
                  sinks = on.random(Dtype::f32, {kHeads});
    for (const bool all_options : {false, true}) {
        AttentionCase of{kHeads, kKvHeads, kD, 0.125, 0, true};
        AttentionOptions options{.scale = 0.125f, .causal = true};
        if (all_options) {
            options.window = 4, options.soft_cap = 2, options.sinks = sinks.tensor;
            of.window = 4, of.soft_cap = 2, of.sinks = &sinks.values;
        }
        const Tensor out = on.zeros({kRows, kHeads * kD});
        attention(on.ctx(), out, q.tensor, keys.tensor, values.tensor, layout(on), options);
        on.expect(out, attended(of, q.values, keys.values, values.values), 2);
    }
}

// More rows than a GPU's kernels for single queries take.
void check_packed_attention(KernelCase& on) {
    constexpr int64_t kHeads = 2, kD = 64, kEach = 12, kAll = 2 * kEach;
    const Operand q_k_v = on.random({kAll, 3 * kHeads * kD});
    const Tensor out = on.zeros({kAll, kHeads * kD});
    packed_attention(
        on.ctx(), out, q_k_v.tensor, kHeads,
        {on.ids({0, kEach, kAll}), on.ids({0, 1}), on.ids({kEach, kEach}), kEach, kEach},
        {.scale = 0.125f});
    std::vector<int32_t> first(kEach, 0), end(kEach, kEach);
    first.resize(kAll, kEach), end.resize(kAll, kAll);
    on.expect(out, self_attended(q_k_v.values, kHeads, kHeads, kD, first, end, nullptr), 2);
}

void check_attention_scores(KernelCase& on) {
    constexpr size_t kHeads = 2, kD = 64, kFrames = 4;
    const Operand q = on.random({kRows, kHeads * kD}),
                  keys = on.random({kSlots, kHeads, kCapacity, kD});
    const Tensor scores = on.zeros(Dtype::f32, {1, kRows, kFrames});
    int32_t head = 1;
    attention_scores(on.ctx(), scores, q.tensor, keys.tensor, Tensor(&head, Dtype::i32, {1}),
                     layout(on), 0.125f);
    Numbers expected;
    each_row([&](size_t t, size_t b, size_t) {
        for (size_t p = 0; p < kFrames; ++p) {
            double sum = 0;
            for (size_t i = 0; i < kD; ++i)
                sum += q.values[(t * kHeads + 1) * kD + i] *
                       keys.values[cache_at(kSlot[b], 1, kHeads, p, kD) + i];
            expected.push_back(sum * 0.125);
        }
    });
    on.expect(scores, expected, 2);
}

// Keys and values of the heads made from the encoder's output, then attention to all of them.
void check_absorbed_attention(KernelCase& on) {
    constexpr size_t kHeads = 2, kD = 64, kC = kHeads * kD;
    const Operand q = on.random({kRows, kC}), encoded = on.random({kSlots, kCapacity, kC}),
                  kv = on.random({2 * kC, kC}, 0.09), bias = on.random(Dtype::f32, {2 * kC});
    const Tensor out = on.zeros({kRows, kC});
    absorbed_attention(on.ctx(), out, q.tensor, encoded.tensor, {kv.tensor, {}}, bias.tensor,
                       kHeads, layout(on), 0.125f);
    const Numbers made = product_of(encoded.values, kv.values, kC);  // (slots, frames, 2 C)
    Numbers keys(static_cast<size_t>(kSlots) * kHeads * kCapacity * kD), values(keys.size());
    for (size_t slot = 0; slot < 2; ++slot)
        for (size_t p = 0; p < kCapacity; ++p)
            for (size_t c = 0; c < kC; ++c) {
                const size_t at = cache_at(slot, c / kD, kHeads, p, kD) + c % kD;
                const size_t row = (slot * kCapacity + p) * 2 * kC;
                keys[at] = made[row + c];
                values[at] = made[row + kC + c] + bias.values[kC + c];
            }
    on.expect(out, attended({kHeads, kHeads, kD, 0.125}, q.values, keys, values), 4);
}

void check_latent_append(KernelCase& on) {
    constexpr size_t kHeads = 2, kL = 64, kR = 32, kN = 64, kRow = kL + kR, kQ = kN + kR;
    constexpr double kEps = 1e-5;
    const Operand q = on.random({kRows, kHeads * kQ}), latent = on.random({kRows, kRow}),
                  weight = on.random(Dtype::f32, {kL}), frequencies = frequencies_of(on, kR / 2);
    const Tensor cache = on.zeros({kSlots, 1, kCapacity, kRow}),
                 absorbed = on.zeros({kRows, kHeads * kRow});
    latent_append(on.ctx(), cache, absorbed, q.tensor, latent.tensor, kHeads, on.ids(kPositions),
                  {frequencies.tensor, 1},
                  {weight.tensor, {}, static_cast<float>(kEps), NormKind::rms}, layout(on));
    Numbers of_cache(static_cast<size_t>(cache.size())),
        of_absorbed(static_cast<size_t>(absorbed.size()));
    each_row([&](size_t t, size_t b, size_t position) {
        Numbers row(latent.values.begin() + static_cast<std::ptrdiff_t>(t * kRow),
                    latent.values.begin() + static_cast<std::ptrdiff_t>((t + 1) * kRow));
        norm_in_place(row.data(), kL, weight.values, kEps);
        turn(row.data() + kL, frequencies.values, kPositions[t], 1, true);
        std::copy(row.begin(), row.end(),
                  of_cache.begin() +
                      static_cast<std::ptrdiff_t>(cache_at(kSlot[b], 0, 1, position, kRow)));
        for (size_t h = 0; h < kHeads; ++h) {
            double* const to = of_absorbed.data() + (t * kHeads + h) * kRow + kL;
            for (size_t i = 0; i < kR; ++i) to[i] = q.values[(t * kHeads + h) * kQ + kN + i];
            turn(to, frequencies.values, kPositions[t], 1, true);
        }
    });
    on.expect(cache, of_cache, 2);
    on.expect(absorbed, of_absorbed, 2);
}

void check_rope(KernelCase& on) {
    constexpr size_t kHeads = 2, kD = 64, kWidth = (kHeads + 1) * kD;
    for (const bool back : {false, true}) {
        const Operand x = on.random({kRows, kWidth}), frequencies = frequencies_of(on, kD / 2);
        rope(on.ctx(), {x.tensor, kD}, kHeads, kD, on.ids(kPositions), {frequencies.tensor, 1.5f},
             back);
        Numbers expected = x.values;
        for (size_t t = 0; t < static_cast<size_t>(kRows); ++t)
            for (size_t h = 1; h <= kHeads; ++h)
                turn(expected.data() + t * kWidth + h * kD, frequencies.values,
                     back ? -kPositions[t] : kPositions[t], 1.5, false);
        on.expect(x.tensor, expected, 2);
    }
}

void check_self_attention(KernelCase& on) {
    constexpr size_t kHeads = 2, kKvHeads = 1, kD = 64;
    const Operand qkv = on.random({6, (kHeads + 2 * kKvHeads) * kD});
    const Tensor out = on.zeros({6, kHeads * kD}), lse = on.zeros(Dtype::f32, {6, kHeads});
    self_attention(on.ctx(), out, lse, qkv.tensor, {on.ids(kFirst), on.ids(kEnd)});
    Numbers of_lse;
    on.expect(out, self_attended(qkv.values, kHeads, kKvHeads, kD, kFirst, kSeen, &of_lse), 2);
    on.expect(lse, of_lse, 2);
}

void check_self_attention_backward(KernelCase& on) {
    constexpr size_t kHeads = 2, kKvHeads = 1, kD = 64, kWidth = (kHeads + 2 * kKvHeads) * kD;
    const Operand qkv = on.random({6, kWidth}), dout = on.random({6, kHeads * kD});
    const Tensor out = on.zeros({6, kHeads * kD}), lse = on.zeros(Dtype::f32, {6, kHeads}),
                 dqkv = on.zeros({6, kWidth});
    const Sequences sequences{on.ids(kFirst), on.ids(kEnd)};
    self_attention(on.ctx(), out, lse, qkv.tensor, sequences);
    self_attention_backward(on.ctx(), dqkv, dout.tensor, out, lse, qkv.tensor, sequences);
    const auto loss = [&](const Numbers& at) {
        return dot(self_attended(at, kHeads, kKvHeads, kD, kFirst, kSeen, nullptr), dout.values);
    };
    on.expect(dqkv, derivative(loss, qkv.values), 4);
}

}  // namespace hark::doctor
