#include <cmath>

#include "kernels/checks.h"
#include "kernels/elementwise/cast_to_f32.h"
#include "kernels/gradients.h"
#include "kernels/ops_table.h"
#include "kernels/rope/turns.h"
#include "kernels/runtime/parallel.h"

namespace hark {

void check_rope(const char* op, const Rope& rope, int64_t d) {
    check_tensor(op, "frequencies", rope.frequencies, Dtype::f32, {-1});
    require(2 * rope.frequencies.dim(0) <= d, op, ": expected at most ", d / 2,
            " frequencies, found ", rope.frequencies);
}

void fill_turns(float* turns, const int32_t* position, int64_t rows, const Rope& rope) {
    if (!rope.frequencies) return;
    const int64_t half = rope.frequencies.dim(0);
    const float* frequencies = rope.frequencies.as<float>();
    for (int64_t t = 0; t < rows; ++t)
        for (int64_t i = 0; i < half; ++i) {
            const float angle = static_cast<float>(position[t]) * frequencies[i];
            turns[t * 2 * half + i] = std::cos(angle) * rope.scale;
            turns[t * 2 * half + half + i] = std::sin(angle) * rope.scale;
        }
}

void turn(float* x, const float* turns, int64_t half, float direction) {
    for (int64_t i = 0; i < half; ++i) {
        const float low = x[i], high = x[i + half], c = turns[i], s = turns[i + half] * direction;
        x[i] = low * c - high * s;
        x[i + half] = high * c + low * s;
    }
}

void rope(Context& ctx, const Columns& x, int64_t heads, int64_t d, Tensor position, const Rope& by,
          bool back) {
    constexpr const char* kOp = "rope";
    const Tensor& rows = x.rows;
    require(rows.rank == 2 && (rows.dtype == Dtype::f32 || rows.dtype == Dtype::bf16), kOp,
            ": expected x (T, W) in f32 or bf16, found ", rows);
    const int64_t count = rows.dim(0), width = rows.dim(1);
    check_columns(kOp, "x", x, count, heads * d, rows.dtype);
    check_tensor(kOp, "position", position, Dtype::i32, {count});
    check_rope(kOp, by, d);
    if (ctx.on_cuda()) return cuda_ops().rope(ctx, x, heads, d, position, by, back);
    if (rows.dtype == Dtype::bf16) {
        CastToF32 wide(ctx, kOp);
        rope(ctx, {wide.inout(rows), x.first}, heads, d, position, by, back);
        return wide.round();
    }
    const int64_t half = by.frequencies.dim(0);
    const Arena::Scope scope(ctx.arena);
    float* turns = ctx.arena.tensor(Dtype::f32, {count, 2 * half}).as<float>();
    fill_turns(turns, position.as<int32_t>(), count, by);
    float* values = rows.as<float>() + x.first;
    parallel_for(ctx.threads, count, [&](int64_t t) {
        for (int64_t h = 0; h < heads; ++h)
            turn(values + t * width + h * d, turns + t * 2 * half, half, back ? -1.0f : 1.0f);
    });
}

}  // namespace hark
