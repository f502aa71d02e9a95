#include <algorithm>

#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/elementwise/cast_to_f32.h"
#include "kernels/gradients.h"
#include "kernels/ops_table.h"
#include "kernels/quant/fp8_rows.h"
#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

void check_ids(const int32_t* ids, const int32_t* places, int64_t rows, int64_t vocabulary,
               int64_t positions) {
    for (int64_t t = 0; t < rows; ++t) {
        require(0 <= ids[t] && ids[t] < vocabulary, "embedding: token ", ids[t],
                " is outside the vocabulary of ", vocabulary);
        require(0 <= places[t] && places[t] < positions, "embedding: position ", places[t],
                " is outside the ", positions, " positions of the model");
    }
}

}  // namespace

void embedding(Context& ctx, Tensor y, Tensor tokens, Tensor position, const Matrix& table,
               Tensor positions, float scale) {
    check_matrix("embedding", table);
    require(tokens.rank == 1 && is_float(y.dtype),
            "embedding: expected tokens i32 (T) and y in f32, f16 or bf16, found ", tokens, " and ",
            y);
    const int64_t rows = tokens.dim(0), channels = table.values.dim(1);
    check_tensor("embedding", "y", y, y.dtype, {rows, channels});
    check_tensor("embedding", "tokens", tokens, Dtype::i32, {rows});
    check_tensor("embedding", "position", position, Dtype::i32, {rows});
    if (positions) check_tensor("embedding", "positions", positions, Dtype::f32, {-1, channels});
    if (ctx.on_cuda())
        return cuda_ops().embedding(ctx, y, tokens, position, table, positions, scale);
    if (y.dtype == Dtype::bf16) {
        CastToF32 wide(ctx, "embedding");
        embedding(ctx, wide.out(y), tokens, position, table, positions, scale);
        return wide.round();
    }
    const int32_t *ids = tokens.as<int32_t>(), *places = position.as<int32_t>();
    check_ids(ids, places, rows, table.values.dim(0), positions ? positions.dim(0) : INT32_MAX);
    const CpuKernels& cpu = cpu_kernels();
    const Tensor& values = table.values;
    const int64_t bytes = static_cast<int64_t>(row_bytes(values.dtype, channels));
    for (int64_t t = 0; t < rows; ++t) {
        const std::byte* from = static_cast<const std::byte*>(values.data) + ids[t] * bytes;
        float* to = y.as<float>() + t * channels;
        if (values.dtype == Dtype::i8)
            cpu.widen_int8(to, reinterpret_cast<const int8_t*>(from),
                           table.scales.as<float>()[ids[t]], channels);
        else if (values.dtype == Dtype::fp8)
            widen_fp8(to, reinterpret_cast<const fp8_t*>(from), table.scales.as<float>()[ids[t]],
                      channels);
        else if (is_quantized(values.dtype))
            cpu.dequantize(to, from, values.dtype, channels);
        else
            cpu.widen(to, from, values.dtype, channels);
        if (scale != 1) cpu.multiply(to, to, scale, channels);
        if (positions) cpu.add(to, to, positions.as<float>() + places[t] * channels, channels);
    }
}

void embedding_backward(Context& ctx, Tensor dtable, Tensor dpositions, Tensor dy, Tensor tokens,
                        Tensor position) {
    constexpr const char* kOp = "embedding_backward";
    require(dy.rank == 2 && dy.dim(0) <= INT32_MAX, kOp, ": expected dy (T, C), found ", dy);
    const int64_t rows = dy.dim(0), channels = dy.dim(1);
    check_tensor(kOp, "dy", dy, dy.dtype, {rows, channels});
    check_tensor(kOp, "tokens", tokens, Dtype::i32, {rows});
    check_tensor(kOp, "position", position, Dtype::i32, {rows});
    const auto check_table = [&](const char* name, const Tensor& table) {
        check_tensor(kOp, name, table, Dtype::f32, {-1, channels});
        require(table.dim(0) < INT32_MAX, kOp, ": expected fewer than 2^31 - 1 rows, found ",
                table);
    };
    check_table("dtable", dtable);
    if (dpositions) check_table("dpositions", dpositions);
    if (ctx.on_cuda())
        return cuda_ops().embedding_backward(ctx, dtable, dpositions, dy, tokens, position);
    if (dy.dtype == Dtype::bf16) {
        CastToF32 wide(ctx, kOp);
        return embedding_backward(ctx, dtable, dpositions, wide.in(dy), tokens, position);
    }
    const int32_t *ids = tokens.as<int32_t>(), *places = position.as<int32_t>();
    check_ids(ids, places, rows, dtable.dim(0), dpositions ? dpositions.dim(0) : INT32_MAX);
    float *table = dtable.as<float>(), *positions = dpositions ? dpositions.as<float>() : nullptr;
    // By columns, since several rows may have the same token.
    parallel_for(ctx.threads, (channels + kColumnsAtOnce - 1) / kColumnsAtOnce, [&](int64_t i) {
        const int64_t first = i * kColumnsAtOnce, n = std::min(kColumnsAtOnce, channels - first);
        for (int64_t t = 0; t < rows; ++t) {
            const float* from = dy.as<float>() + t * channels + first;
            const auto add_to = [&](float* row) {
                cpu_kernels().add(row + first, row + first, from, n);
            };
            add_to(table + ids[t] * channels);
            if (positions) add_to(positions + places[t] * channels);
        }
    });
}

void add_positions(Context& ctx, Tensor x, Tensor positions) {
    require(positions.rank == 2 && positions.size() > 0 && x.rank >= 2 && is_float(x.dtype) &&
                x.dim(-1) == positions.dim(1) && x.dim(-2) == positions.dim(0),
            "add_positions: expected x (B, T, C) and positions (T, C), found ", x, " and ",
            positions);
    if (ctx.on_cuda()) return cuda_ops().add_positions(ctx, x, positions);
    float* to = x.as<float>();
    const float* from = positions.as<float>();
    const int64_t rows = positions.dim(0), channels = positions.dim(1);
    parallel_for(ctx.threads, x.rows(), [&](int64_t t) {
        float* row = to + t * channels;
        cpu_kernels().add(row, row, from + t % rows * channels, channels);
    });
}

void select_rows(Context& ctx, Tensor y, Tensor x, Tensor rows) {
    require(x.rank >= 1 && rows.rank == 1 && is_float(x.dtype) && is_float(y.dtype),
            "select_rows: expected x (T, C) and y in f32, f16 or bf16 and rows (n), found ", x,
            ", ", y, " and ", rows);
    const int64_t channels = x.dim(-1), count = rows.dim(0);
    check_tensor("select_rows", "rows", rows, Dtype::i32, {count});
    check_tensor("select_rows", "y", y, y.dtype, {count, channels});
    if (ctx.on_cuda()) return cuda_ops().select_rows(ctx, y, x, rows);
    const int32_t* places = rows.as<int32_t>();
    for (int64_t i = 0; i < count; ++i) {
        require(0 <= places[i] && places[i] < x.rows(), "select_rows: row ", places[i],
                " is outside x ", x);
        std::copy_n(x.as<float>() + places[i] * channels, channels, y.as<float>() + i * channels);
    }
}

}  // namespace hark
