// Causal self-attention for training: every sequence and head separately, in blocks of queries.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/elementwise/cast_to_f32.h"
#include "kernels/gradients.h"
#include "kernels/linear/onednn.h"
#include "kernels/ops_table.h"

namespace hark {
namespace {

constexpr int64_t kQueries = 128;  // per block

struct TrainProblem {
    const float* qkv;
    const float* out;
    float* lse;
    const int32_t* end;             // of each row's sequence
    int64_t heads, kv_heads, head;  // head: channels of one

    int64_t channels() const { return heads * head; }
    int64_t stride() const { return (heads + 2 * kv_heads) * head; }
    int64_t group() const { return heads / kv_heads; }  // heads that share keys and values
    float scale() const { return 1 / std::sqrt(static_cast<float>(head)); }
    // Queries of head h, its keys or its values (0, 1, 2), in qkv or its gradient, from row t.
    template <class T>
    T* part(T* qkv, int which, int64_t t, int64_t h) const {
        const int64_t place = which == 0 ? h : heads + (which - 1) * kv_heads + h / group();
        return qkv + t * stride() + place * head;
    }
};

struct Heads {
    int64_t q = 0, kv = 0, channels = 0;  // channels of one; kv 0: the shapes do not fit
};

Heads heads_of(const Tensor& out, const Tensor& lse, const Tensor& qkv) {
    const int64_t q = lse.dim(1);
    if (q <= 0 || out.rank != 2 || out.dim(1) <= 0 || out.dim(1) % q != 0) return {};
    const int64_t d = out.dim(1) / q, twice = qkv.dim(1) - q * d;
    if (twice <= 0 || twice % (2 * d) != 0 || q % (twice / (2 * d)) != 0) return {};
    return {q, twice / (2 * d), d};
}

void check_self_attention(const char* op, const Tensor& out, const Tensor& lse, const Tensor& qkv,
                          const Sequences& sequences) {
    require(qkv && qkv.rank == 2 && (qkv.dtype == Dtype::f32 || qkv.dtype == Dtype::bf16), op,
            ": expected qkv (T, (H + 2 Hkv) D) of f32 or bf16, found ", qkv);
    const int64_t rows = qkv.dim(0);
    check_tensor(op, "lse", lse, Dtype::f32, {rows, -1});
    check_tensor(op, "out", out, qkv.dtype, {rows, -1});
    require(heads_of(out, lse, qkv).kv > 0, op,
            ": expected qkv (T, (H + 2 Hkv) D), out (T, H D) and lse (T, H) with Hkv dividing H, "
            "found ",
            qkv, ", ", out, " and ", lse);
    check_tensor(op, "first", sequences.first, Dtype::i32, {rows});
    check_tensor(op, "end", sequences.end, Dtype::i32, {rows});
}

// The checked arguments; on the host, so the sequences can be read.
TrainProblem problem_of(const char* op, const Tensor& out, const Tensor& lse, const Tensor& qkv,
                        const Sequences& sequences) {
    const int64_t rows = qkv.dim(0);
    const Heads heads = heads_of(out, lse, qkv);
    const int32_t *first = sequences.first.as<int32_t>(), *end = sequences.end.as<int32_t>();
    for (int64_t t = 0; t < rows; ++t) {
        const bool begins = t == 0 || end[t - 1] == t;
        require(begins ? first[t] == t && end[t] > t && end[t] <= rows
                       : first[t] == first[t - 1] && end[t] == end[t - 1],
                op, ": expected sequences one after another, found row ", t, " in the rows ",
                first[t], " to ", end[t], " of ", rows);
    }
    return {qkv.as<float>(), out.as<float>(), lse.as<float>(), end,
            heads.q,         heads.kv,        heads.channels};
}

// Calls body(first row of the sequence, its rows, head, scratch of two blocks of scores) for each
// of `heads` heads.
template <class Body>
void each_head(Context& ctx, const TrainProblem& p, int64_t heads, int64_t rows, const Body& body) {
    const Arena::Scope scope(ctx.arena);
    std::vector<int32_t> starts = {0};
    int64_t longest = 0;
    while (starts.back() < rows) {
        const int32_t begin = starts.back(), end = p.end[begin];
        longest = std::max<int64_t>(longest, end - begin);
        starts.push_back(end);
    }
    const int64_t tasks = (std::ssize(starts) - 1) * heads, each = 2 * kQueries * longest;
    const int threads = static_cast<int>(std::clamp<int64_t>(tasks, 1, ctx.threads));
    float* memory = ctx.arena.tensor(Dtype::f32, {threads, each}).as<float>();
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < tasks; ++i) {
        const auto sequence = static_cast<size_t>(i / heads);
        const int32_t first = starts[sequence];
        body(first, starts[sequence + 1] - first, i % heads, memory + omp_get_thread_num() * each);
    }
}

// scores (n, keys) of the queries [begin, begin + n) of a sequence that starts at row `first`.
void scores_of(const TrainProblem& p, float* scores, int64_t first, int64_t begin, int64_t n,
               int64_t keys, int64_t h) {
    onednn::multiply(1, scores, keys, {p.part(p.qkv, 0, first + begin, h), p.stride()},
                     {p.part(p.qkv, 1, first, h), p.stride(), true}, n, keys, p.head, false);
}

void forward_head(const TrainProblem& p, float* out, int64_t first, int64_t rows, int64_t h,
                  float* scores) {
    const CpuKernels& cpu = cpu_kernels();
    for (int64_t begin = 0; begin < rows; begin += kQueries) {
        const int64_t n = std::min(kQueries, rows - begin), keys = begin + n;
        scores_of(p, scores, first, begin, n, keys, h);
        float totals[kQueries];
        for (int64_t i = 0; i < n; ++i) {
            float* row = scores + i * keys;
            const int64_t seen = begin + i + 1;
            const float top = cpu.largest(row, seen) * p.scale();
            totals[i] = cpu.softmax(row, seen, p.scale());
            std::fill(row + seen, row + keys, 0.0f);
            p.lse[(first + begin + i) * p.heads + h] = top + std::log(totals[i]);
        }
        float* to = out + (first + begin) * p.channels() + h * p.head;
        onednn::multiply(1, to, p.channels(), {scores, keys},
                         {p.part(p.qkv, 2, first, h), p.stride()}, n, p.head, keys, false);
        for (int64_t i = 0; i < n; ++i)
            cpu.multiply(to + i * p.channels(), to + i * p.channels(), 1 / totals[i], p.head);
    }
}

// The gradients of head h's queries, and its part of those of its keys and values.
void backward_head(const TrainProblem& p, float* dqkv, const float* dout, int64_t first,
                   int64_t rows, int64_t h, float* scores) {
    const CpuKernels& cpu = cpu_kernels();
    float *dq = p.part(dqkv, 0, first, h), *dk = p.part(dqkv, 1, first, h);
    float* dv = p.part(dqkv, 2, first, h);
    for (int64_t begin = 0; begin < rows; begin += kQueries) {
        const int64_t n = std::min(kQueries, rows - begin), keys = begin + n;
        // Earlier heads of the group have written sums for all keys, earlier blocks for those
        // before `begin`.
        const bool is_later_head = h % p.group() > 0, later = begin > 0 || is_later_head;
        const int64_t row0 = first + begin, at = row0 * p.channels() + h * p.head;
        float* ds = scores + n * keys;
        scores_of(p, scores, first, begin, n, keys, h);
        onednn::multiply(1, ds, keys, {dout + at, p.channels()},
                         {p.part(p.qkv, 2, first, h), p.stride(), true}, n, keys, p.head, false);
        for (int64_t i = 0; i < n; ++i) {
            float *row = scores + i * keys, *gradient = ds + i * keys;
            const int64_t seen = begin + i + 1, place = at + i * p.channels();
            const float top = cpu.largest(row, seen) * p.scale();
            cpu.softmax(row, seen, p.scale());
            cpu.multiply(row, row, std::exp(top - p.lse[(row0 + i) * p.heads + h]), seen);
            std::fill(row + seen, row + keys, 0.0f);
            cpu.scores_backward(gradient, row, cpu.dot(dout + place, p.out + place, p.head),
                                p.scale(), keys);
        }
        const onednn::Factor probabilities = {scores, keys, true}, slopes = {ds, keys, true};
        onednn::multiply(1, dq + begin * p.stride(), p.stride(), {ds, keys},
                         {p.part(p.qkv, 1, first, h), p.stride()}, n, p.head, keys, false);
        if (later && !is_later_head) {
            for (int64_t i = begin; i < keys; ++i) {
                std::fill_n(dk + i * p.stride(), p.head, 0.0f);
                std::fill_n(dv + i * p.stride(), p.head, 0.0f);
            }
        }
        onednn::multiply(1, dk, p.stride(), slopes, {p.part(p.qkv, 0, row0, h), p.stride()}, keys,
                         p.head, n, later);
        onednn::multiply(1, dv, p.stride(), probabilities, {dout + at, p.channels()}, keys, p.head,
                         n, later);
    }
}

}  // namespace

void self_attention(Context& ctx, Tensor out, Tensor lse, Tensor qkv, const Sequences& sequences) {
    check_self_attention("self_attention", out, lse, qkv, sequences);
    if (ctx.on_cuda()) return cuda_ops().self_attention(ctx, out, lse, qkv, sequences);
    if (qkv.dtype == Dtype::bf16) {
        CastToF32 wide(ctx, "self_attention");
        self_attention(ctx, wide.out(out), lse, wide.in(qkv), sequences);
        return wide.round();
    }
    const TrainProblem p = problem_of("self_attention", out, lse, qkv, sequences);
    each_head(ctx, p, p.heads, qkv.dim(0),
              [&](int64_t first, int64_t rows, int64_t h, float* scores) {
                  forward_head(p, out.as<float>(), first, rows, h, scores);
              });
}

void self_attention_backward(Context& ctx, Tensor dqkv, Tensor dout, Tensor out, Tensor lse,
                             Tensor qkv, const Sequences& sequences) {
    constexpr const char* kOp = "self_attention_backward";
    check_self_attention(kOp, out, lse, qkv, sequences);
    check_tensor(kOp, "dqkv", dqkv, qkv.dtype, {qkv.dim(0), qkv.dim(1)});
    check_tensor(kOp, "dout", dout, qkv.dtype, {out.dim(0), out.dim(1)});
    if (ctx.on_cuda())
        return cuda_ops().self_attention_backward(ctx, dqkv, dout, out, lse, qkv, sequences);
    if (qkv.dtype == Dtype::bf16) {
        CastToF32 wide(ctx, kOp);
        self_attention_backward(ctx, wide.out(dqkv), wide.in(dout), wide.in(out), lse, wide.in(qkv),
                                sequences);
        return wide.round();
    }
    const TrainProblem p = problem_of(kOp, out, lse, qkv, sequences);
    const auto body = [&](int64_t first, int64_t rows, int64_t kv_head, float* scores) {
        for (int64_t h = kv_head * p.group(); h < (kv_head + 1) * p.group(); ++h)
            backward_head(p, dqkv.as<float>(), dout.as<float>(), first, rows, h, scores);
    };
    each_head(ctx, p, p.kv_heads, qkv.dim(0), body);
}

}  // namespace hark
