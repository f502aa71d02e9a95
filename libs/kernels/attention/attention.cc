#include "kernels/ops.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/attention/attention_checks.h"
#include "kernels/kv_cache/block_table.h"
#include "kernels/kv_cache/cache_rows.h"
#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

constexpr int64_t kKeysInRun = 256;   // keys per task of one query
constexpr int64_t kScores = 1 << 16;  // floats of scores at a time: they fit the cache
constexpr int64_t kMostInBlock = 96;  // queries per block of scores

struct Problem {
    float* out;
    const float* q;
    const std::byte *keys, *values;
    Dtype dtype;
    const int32_t *start, *length;
    BlockTable table;
    int64_t sequences, heads, kv_heads, head, q_width;
    AttentionOptions options;

    int64_t queries(int64_t b) const { return start[b + 1] - start[b]; }
    // Query j of sequence b sees the keys [first_key, end_key).
    int64_t end_key(int64_t b, int64_t j) const {
        return options.causal ? length[b] - queries(b) + j + 1 : length[b];
    }
    int64_t first_key(int64_t b, int64_t j) const {
        return options.window > 0 ? std::max<int64_t>(0, end_key(b, j) - options.window) : 0;
    }
    // The most keys that a query of sequence b sees.
    int64_t most_keys(int64_t b) const {
        const int64_t all = length[b];
        return options.window > 0 ? std::min(all, options.window) : all;
    }
    int64_t row_bytes() const { return cache_row_bytes(dtype, head); }
    // The type of the rows that rows_of() returns.
    Dtype type_of_rows() const { return is_quantized(dtype) ? Dtype::f32 : dtype; }
    int64_t bytes_of_rows() const { return cache_row_bytes(type_of_rows(), head); }
    bool copies_rows() const { return table.per_sequence > 1 || is_quantized(dtype); }
    // The rows of query head h in a cache's first block, in bytes.
    int64_t head_offset(int64_t h) const {
        return h / (heads / kv_heads) * table.size * row_bytes();
    }
    // The rows [first, end) of sequence b and head h: those of the cache if they are numbers in one
    // block, else copied to `copy`, dequantised. Rows before `seen` are in no query's window: their
    // block may have been given back, and they are 0 in a copy.
    const std::byte* rows_of(const std::byte* cache, int64_t b, int64_t h, int64_t first,
                             int64_t seen, int64_t end, std::byte* copy) const {
        const int64_t kv = h / (heads / kv_heads), bytes = bytes_of_rows();
        if (!copies_rows()) return cache + table.row(b, first, kv_heads, kv) * bytes;
        std::memset(copy, 0, static_cast<size_t>((seen - first) * bytes));
        for (int64_t p = seen; p < end;) {
            const int64_t n = std::min(table.size - p % table.size, end - p);
            const std::byte* from = cache + table.row(b, p, kv_heads, kv) * row_bytes();
            std::byte* to = copy + (p - first) * bytes;
            if (is_quantized(dtype))
                cpu_kernels().dequantize(reinterpret_cast<float*>(to), from, dtype, n * head);
            else
                std::memcpy(to, from, static_cast<size_t>(n * bytes));
            p += n;
        }
        return copy;
    }
    const float* query(int64_t b, int64_t j, int64_t h) const {
        return q + (start[b] + j) * q_width + h * head;
    }
    float* result(int64_t b, int64_t j, int64_t h) const {
        return out + ((start[b] + j) * heads + h) * head;
    }
};

// The denominator of a softmax whose largest score is `top`, with head h's sink.
float with_sink(float total, float top, const Problem& p, int64_t h) {
    return p.options.sinks ? total + std::exp(p.options.sinks.as<float>()[h] - top) : total;
}

// softmax() of CpuKernels over n scores that are not scaled yet; returns the sum with the sink.
float softmax_row(float* scores, int64_t n, const Problem& p, int64_t h) {
    const CpuKernels& cpu = cpu_kernels();
    float scale = p.options.scale;
    if (p.options.soft_cap > 0) {
        cpu.soft_cap(scores, n, scale, p.options.soft_cap);
        scale = 1;
    }
    const float top = p.options.sinks ? cpu.largest(scores, n) * scale : 0;
    return with_sink(cpu.softmax(scores, n, scale), top, p, h);
}

int64_t runs_of(int64_t keys) { return (keys + kKeysInRun - 1) / kKeysInRun; }

// Keys and values of a run, dequantised to `rows` where they are blocks.
AttentionRun run_of(const Problem& p, int64_t b, int64_t h, int64_t first, int64_t count,
                    float* rows) {
    AttentionRun run = {.keys = p.keys + p.head_offset(h),
                        .values = p.values + p.head_offset(h),
                        .dtype = p.type_of_rows(),
                        .blocks = p.table.of_sequence(b),
                        .block_size = p.table.size,
                        .block_stride = p.kv_heads * p.table.size * p.head,
                        .first = first,
                        .count = count,
                        .head = p.head,
                        .scale = p.options.scale,
                        .soft_cap = p.options.soft_cap};
    if (!is_quantized(p.dtype)) return run;
    static constexpr int32_t kOneBlock = 0;
    float* values = rows + count * p.head;
    const auto widen = [&](const std::byte* cache, float* to) {
        return p.rows_of(cache, b, h, first, first, first + count,
                         reinterpret_cast<std::byte*>(to));
    };
    run.keys = widen(p.keys, rows);
    run.values = widen(p.values, values);
    run.blocks = &kOneBlock;
    run.block_size = count;
    run.first = 0;
    return run;
}

// Sequences with few queries: each (query, head) in ranges of keys, whose results are merged in
// order. A task has one head; of a quantised cache, those that share a key head.
void few_queries(Context& ctx, const Problem& p, const int32_t* rows, int64_t count,
                 int64_t most_keys) {
    const Arena::Scope scope(ctx.arena);
    const CpuKernels& cpu = cpu_kernels();
    const bool widens = is_quantized(p.dtype);
    const int64_t heads = widens ? p.heads / p.kv_heads : 1, tasks = p.heads / heads;
    const int64_t runs = runs_of(most_keys), stride = p.head + 2;  // out, top, total
    float* partial = ctx.arena.tensor(Dtype::f32, {count, p.heads, runs, stride}).as<float>();
    const int64_t widened = widens ? 2 * kKeysInRun * p.head : 0;
    float* scratch = ctx.arena.tensor(Dtype::f32, {ctx.threads, widened}).as<float>();
    parallel_for(ctx.threads, count * tasks * runs, [&](int64_t i) {
        const int64_t row = i / runs / tasks, h = i / runs % tasks * heads;
        const int32_t b = rows[2 * row], j = rows[2 * row + 1];
        const int64_t keys = p.end_key(b, j), begin = p.first_key(b, j) + i % runs * kKeysInRun;
        if (begin >= keys) return;
        AttentionRun run = run_of(p, b, h, begin, std::min(kKeysInRun, keys - begin),
                                  scratch + omp_get_thread_num() * widened);
        float scores[kKeysInRun];
        for (int64_t of = h; of < h + heads; ++of) {
            run.query = p.query(b, j, of);
            AttentionSum sum = {.out = partial + ((row * p.heads + of) * runs + i % runs) * stride};
            cpu.attend(sum, run, scores);
            sum.out[p.head] = sum.top;
            sum.out[p.head + 1] = sum.total;
        }
    });
    for (int64_t i = 0; i < count * p.heads; ++i) {
        const int32_t b = rows[2 * (i / p.heads)], j = rows[2 * (i / p.heads) + 1];
        float* first = partial + i * runs * stride;
        AttentionSum sum = {first, first[p.head], first[p.head + 1]};
        for (int64_t r = 1; r < runs_of(p.end_key(b, j) - p.first_key(b, j)); ++r) {
            float* next = first + r * stride;
            cpu.combine(sum, {next, next[p.head], next[p.head + 1]}, p.head);
        }
        const float total = with_sink(sum.total, sum.top, p, i % p.heads);
        cpu.multiply(p.result(b, j, i % p.heads), sum.out, 1 / total, p.head);
    }
}

struct Task {
    int32_t sequence, head, begin, end;  // queries [begin, end)
};

// Scratch of one thread.
struct Scratch {
    float *keys, *values, *scores, *out;
    std::byte* rows;  // copied from a cache
};

// One head: keys and values are packed once, then blocks of queries are multiplied with all of
// them.
void many_queries(const Problem& p, const Task& task, const Scratch& scratch, int64_t block) {
    const CpuKernels& cpu = cpu_kernels();
    const int64_t b = task.sequence, h = task.head;
    // Sums over keys are cut at multiples of kKeysInRun: they begin there, whatever the task is.
    const int64_t seen = p.first_key(b, task.begin), first_key = seen / kKeysInRun * kKeysInRun;
    const int64_t end_key = p.end_key(b, task.end - 1), all_keys = end_key - first_key;
    const int64_t ld_scores = (all_keys + cpu.panel - 1) / cpu.panel * cpu.panel;
    const int64_t ld_out = (p.head + cpu.panel - 1) / cpu.panel * cpu.panel;
    const auto rows_of = [&](const std::byte* cache) {
        return p.rows_of(cache, b, h, first_key, seen, end_key, scratch.rows);
    };
    cpu.pack_transposed(scratch.keys, rows_of(p.keys), p.head, p.type_of_rows(), p.head, all_keys);
    cpu.pack(scratch.values, rows_of(p.values), p.type_of_rows(), all_keys, p.head);
    for (int64_t j = task.begin; j < task.end; j += block) {
        const int64_t rows = std::min<int64_t>(block, task.end - j);
        const int64_t keys = p.end_key(b, j + rows - 1) - first_key;  // of the block's last row
        cpu.multiply_packed(scratch.scores, ld_scores, p.query(b, j, h), p.q_width, scratch.keys,
                            rows, keys, p.head, p.head, false);
        float totals[kMostInBlock];
        for (int64_t r = 0; r < rows; ++r) {
            float* row = scratch.scores + r * ld_scores;
            const int64_t begin = p.first_key(b, j + r) - first_key;
            const int64_t end = p.end_key(b, j + r) - first_key;
            std::fill(row, row + begin, 0.0f);
            totals[r] = softmax_row(row + begin, end - begin, p, h);
            std::fill(row + end, row + keys, 0.0f);
        }
        cpu.multiply_packed(scratch.out, ld_out, scratch.scores, ld_scores, scratch.values, rows,
                            p.head, keys, all_keys, false);
        for (int64_t r = 0; r < rows; ++r)
            cpu.multiply(p.result(b, j + r, h), scratch.out + r * ld_out, 1 / totals[r], p.head);
    }
}

// Number of parts of a head. Whole heads if they keep all threads busy; otherwise the fewest parts
// with which no thread has more than 9/8 of its share.
int64_t parts_of_head(int64_t heads, int threads) {
    for (int64_t parts = 1; parts < 16; ++parts) {
        const int64_t tasks = heads * parts, rounds = (tasks + threads - 1) / threads;
        if (rounds * threads * 8 <= tasks * 9) return parts;
    }
    return 16;
}

// The kernel for queries that all see all keys, if the processor has one and the caller allows it.
const IntegerAttention* integers_for(const Problem& p) {
    const AttentionOptions& o = p.options;
    const bool is_plain = !o.causal && o.window == 0 && o.soft_cap == 0 && !o.sinks;
    const bool in_place = p.dtype == Dtype::f32 && !p.copies_rows();
    return o.bits < 32 && is_plain && in_place ? cpu_kernels().integer_attention : nullptr;
}

void tasks_in_integers(Context& ctx, const Problem& p, const std::vector<Task>& tasks,
                       int64_t most_keys, const IntegerAttention& with) {
    const int threads = static_cast<int>(std::min<int64_t>(ctx.threads, std::ssize(tasks)));
    const int64_t each = with.scratch_bytes(most_keys, p.head);
    auto* scratch = static_cast<std::byte*>(ctx.arena.tensor(Dtype::u8, {threads, each}).data);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (size_t i = 0; i < tasks.size(); ++i) {
        const int64_t b = tasks[i].sequence, h = tasks[i].head, begin = tasks[i].begin;
        const auto rows_of = [&](const std::byte* cache) {
            return reinterpret_cast<const float*>(
                p.rows_of(cache, b, h, 0, 0, p.length[b], nullptr));
        };
        with.attend({.out = p.result(b, begin, h),
                     .q = p.query(b, begin, h),
                     .keys = rows_of(p.keys),
                     .values = rows_of(p.values),
                     .out_stride = p.heads * p.head,
                     .q_stride = p.q_width,
                     .queries = tasks[i].end - begin,
                     .keys_count = p.length[b],
                     .head = p.head,
                     .scale = p.options.scale,
                     .bits = p.options.bits},
                    scratch + omp_get_thread_num() * each);
    }
}

void long_queries(Context& ctx, const Problem& p, const std::vector<int32_t>& sequences) {
    const Arena::Scope scope(ctx.arena);
    const CpuKernels& cpu = cpu_kernels();
    const int64_t parts =
        parts_of_head(static_cast<int64_t>(sequences.size()) * p.heads, ctx.threads);
    std::vector<Task> tasks;
    int64_t most_keys = 0;
    for (const int32_t b : sequences) {
        const int64_t n = p.queries(b);
        const int64_t share = std::max<int64_t>((n + parts - 1) / parts, 2 * cpu.rows_at_once);
        most_keys = std::max(most_keys,
                             std::min<int64_t>(p.length[b], p.most_keys(b) + share + kKeysInRun));
        for (int32_t h = 0; h < p.heads; ++h)
            for (int64_t j = 0; j < n; j += share)
                tasks.push_back(
                    {b, h, static_cast<int32_t>(j), static_cast<int32_t>(std::min(j + share, n))});
    }
    if (const IntegerAttention* with = integers_for(p))
        return tasks_in_integers(ctx, p, tasks, most_keys, *with);
    const int64_t keys = (most_keys + cpu.panel - 1) / cpu.panel * cpu.panel;
    const int64_t head = (p.head + cpu.panel - 1) / cpu.panel * cpu.panel;
    const int64_t block =
        std::clamp<int64_t>(kScores / keys / cpu.rows_at_once, 1, kMostInBlock / cpu.rows_at_once) *
        cpu.rows_at_once;
    const int threads = static_cast<int>(std::min<int64_t>(ctx.threads, std::ssize(tasks)));
    const int64_t each = keys * p.head + keys * head + block * keys + block * head;
    float* memory = ctx.arena.tensor(Dtype::f32, {threads, each}).as<float>();
    const int64_t copied = p.copies_rows() ? most_keys * p.bytes_of_rows() : 0;
    auto* rows = static_cast<std::byte*>(ctx.arena.tensor(Dtype::u8, {threads, copied}).data);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (size_t i = 0; i < tasks.size(); ++i) {
        float* own = memory + omp_get_thread_num() * each;
        const Scratch scratch = {own, own + keys * p.head, own + keys * (p.head + head),
                                 own + keys * (p.head + head + block),
                                 rows + omp_get_thread_num() * copied};
        many_queries(p, tasks[i], scratch, block);
    }
}

void attention_cpu(Context& ctx, const Problem& p) {
    const Arena::Scope scope(ctx.arena);
    int32_t* few =
        ctx.arena.tensor(Dtype::i32, {std::max(p.start[p.sequences], 1), 2}).as<int32_t>();
    int64_t count = 0, most_keys = 0;
    std::vector<int32_t> sequences;
    // The sequence alone decides, so other sequences do not change its bits.
    for (int32_t b = 0; b < p.sequences; ++b) {
        if (p.queries(b) > kFewQueries) {
            sequences.push_back(b);
            continue;
        }
        for (int32_t j = 0; j < p.queries(b); ++j, ++count) {
            few[2 * count] = b;
            few[2 * count + 1] = j;
        }
        most_keys = std::max(most_keys, p.most_keys(b));
    }
    if (count > 0) few_queries(ctx, p, few, count, most_keys);
    if (!sequences.empty()) long_queries(ctx, p, sequences);
}

}  // namespace

void check_attention(const Tensor& out, const Tensor& q, const Tensor& keys, const Tensor& values,
                     const BatchLayout& rows, const AttentionOptions& options) {
    constexpr const char* kOp = "attention";
    check_caches(kOp, keys, values);
    const int64_t head = keys.dim(3), kv_heads = keys.dim(1), width = head * kv_heads;
    require(out.rank >= 1 && is_float(out.dtype) && width > 0 && out.dim(-1) > 0 &&
                out.dim(-1) % width == 0,
            kOp, ": expected out (T, H * ", head, ") in f32, f16 or bf16 with H a multiple of ",
            kv_heads, ", found ", out);
    require(q.rank >= 1 && is_float(q.dtype) && q.rows() == out.rows() && q.dim(-1) >= out.dim(-1),
            kOp, ": expected q (", out.rows(), ", ", out.dim(-1),
            " or more) in f32, f16 or bf16, found ", q);
    check_batch_layout(kOp, rows, out.rows(), keys.dim(2));
    require(options.scale > 0 && options.window >= 0 && options.soft_cap >= 0, kOp,
            ": expected a scale above 0, a window and a soft cap from 0, found ", options.scale,
            ", ", options.window, " and ", options.soft_cap);
    if (options.sinks) check_tensor(kOp, "sinks", options.sinks, Dtype::f32, {out.dim(-1) / head});
}

void attention(Context& ctx, Tensor out, Tensor q, Tensor keys, Tensor values,
               const BatchLayout& rows, const AttentionOptions& options) {
    check_attention(out, q, keys, values, rows, options);
    if (ctx.on_cuda()) return cuda_ops().attention(ctx, out, q, keys, values, rows, options);
    check_batch_layout_values("attention", rows, out.rows(), keys.dim(0), keys.dim(2),
                              options.window);
    const int64_t head = keys.dim(3), kv_heads = keys.dim(1);
    Problem p = {.out = out.as<float>(),
                 .q = q.as<float>(),
                 .keys = static_cast<const std::byte*>(keys.data),
                 .values = static_cast<const std::byte*>(values.data),
                 .dtype = keys.dtype,
                 .start = rows.query_start.as<int32_t>(),
                 .length = rows.length.as<int32_t>(),
                 .table = BlockTable(rows, keys),
                 .sequences = rows.sequences(),
                 .heads = out.dim(-1) / head,
                 .kv_heads = kv_heads,
                 .head = head,
                 .q_width = q.dim(-1),
                 .options = options};
    for (int64_t b = 0; b < p.sequences; ++b)
        require(p.queries(b) == 0 || p.end_key(b, 0) > 0, "attention: sequence ", b, " has ",
                p.length[b], " keys for ", p.queries(b), " queries",
                options.causal ? " under the causal mask" : "", "; every query needs one at least");
    attention_cpu(ctx, p);
}

}  // namespace hark
