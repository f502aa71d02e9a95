#include <algorithm>

#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/ops.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

constexpr int64_t kKeysPerTask = 256;  // keys per task

void check_attention_scores(const Tensor& scores, const Tensor& q, const Tensor& keys,
                            const Tensor& heads, const BatchLayout& rows) {
    require(keys && keys.rank == 4 && is_float(keys.dtype),
            "attention_scores: expected keys (slots, H, capacity, D) of f32, f16 or bf16, found ",
            keys);
    require(q.rank >= 1 && is_float(q.dtype) && q.dim(-1) >= keys.dim(1) * keys.dim(3),
            "attention_scores: expected q (T, ", keys.dim(1) * keys.dim(3),
            " or more) in f32, f16 or bf16, found ", q);
    check_tensor("attention_scores", "heads", heads, Dtype::i32, {-1});
    require(heads.device == Device::cpu, "attention_scores: expected heads on the host");
    check_tensor("attention_scores", "scores", scores, Dtype::f32, {heads.dim(0), q.rows(), -1});
    for (int64_t i = 0; i < heads.dim(0); ++i)
        require(0 <= heads.as<int32_t>()[i] && heads.as<int32_t>()[i] < keys.dim(1),
                "attention_scores: expected a head below ", keys.dim(1), ", found ",
                heads.as<int32_t>()[i]);
    check_batch_layout("attention_scores", rows, q.rows(), keys.dim(2));
    check_one_block("attention_scores", rows);
    require(scores.dim(2) <= rows.max_length, "attention_scores: expected at most ",
            rows.max_length, " frames, found ", scores.dim(2));
}

// Checks the values of index arrays that are on the host.
void check_values(const Tensor& scores, const Tensor& q, const Tensor& keys,
                  const BatchLayout& rows) {
    check_batch_layout_values("attention_scores", rows, q.rows(), keys.dim(0), keys.dim(2));
    for (int64_t b = 0; b < rows.sequences(); ++b)
        require(rows.length.as<int32_t>()[b] >= scores.dim(2), "attention_scores: sequence ", b,
                " has ", rows.length.as<int32_t>()[b], " keys, expected ", scores.dim(2),
                " at least");
}

}  // namespace

void attention_scores(Context& ctx, Tensor scores, Tensor q, Tensor keys, Tensor heads,
                      const BatchLayout& rows, float scale) {
    check_attention_scores(scores, q, keys, heads, rows);
    if (ctx.on_cuda()) return cuda_ops().attention_scores(ctx, scores, q, keys, heads, rows, scale);
    check_values(scores, q, keys, rows);
    const CpuKernels& cpu = cpu_kernels();
    const int64_t frames = scores.dim(2), d = keys.dim(3), width = q.dim(-1);
    const int64_t runs = (frames + kKeysPerTask - 1) / kKeysPerTask;
    const int64_t head_bytes = keys.dim(2) * d * static_cast<int64_t>(size_of(keys.dtype));
    const int32_t *start = rows.query_start.as<int32_t>(), *slot = rows.block_table.as<int32_t>();
    const float* queries = q.as<float>();
    float* out = scores.as<float>();
    parallel_for(ctx.threads, heads.dim(0) * rows.sequences() * runs, [&](int64_t piece) {
        const int64_t b = piece / runs % rows.sequences(), i = piece / runs / rows.sequences();
        const int64_t head = heads.as<int32_t>()[i], begin = piece % runs * kKeysPerTask;
        const int64_t end = std::min(frames, begin + kKeysPerTask);
        const std::byte* stored =
            static_cast<const std::byte*>(keys.data) + (slot[b] * keys.dim(1) + head) * head_bytes;
        float* first = out + (i * q.rows() + start[b]) * frames + begin;
        cpu.products(first, frames, queries + start[b] * width + head * d, width,
                     start[b + 1] - start[b], {stored, keys.dtype, d}, begin, end);
        for (int64_t t = 0; t < start[b + 1] - start[b]; ++t)
            cpu.multiply(first + t * frames, first + t * frames, scale, end - begin);
    });
}

}  // namespace hark
