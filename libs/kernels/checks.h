// Checks at the entry of an operation: shapes and types, on every device.
//
// A function of ops.h or gradients.h checks what holds on all devices. Then it computes on the CPU,
// or calls the GPU's side, which checks its own limits. On the CPU Tensor::as<float>() refuses
// other types.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "core/context.h"
#include "core/error.h"
#include "core/tensor.h"
#include "kernels/ops.h"

namespace hark {

// Throws Error `op: expected NAME f32 (2, 3), found ...` unless the tensor has that dtype and
// shape. A dimension of -1 allows any length.
inline void check_tensor(const char* op, const char* name, const Tensor& tensor, Dtype dtype,
                         std::initializer_list<int64_t> shape) {
    bool fits = tensor.dtype == dtype && tensor.rank == static_cast<int>(shape.size());
    bool empty = false;
    int i = 0;
    for (int64_t dim : shape) {
        fits = fits && (dim < 0 || tensor.shape[i] == dim);
        empty = empty || (i < tensor.rank && tensor.shape[i] == 0);
        ++i;
    }
    if (fits && (tensor || empty)) return;
    std::string expected;
    for (int64_t dim : shape)
        expected += concat(expected.empty() ? "" : ", ", dim < 0 ? "any" : std::to_string(dim));
    fail(op, ": expected ", name, " ", name_of(dtype), " (", expected, "), found ",
         tensor ? describe(tensor) : "none");
}

// Whether it is f32, f16 or bf16.
inline bool is_float(Dtype dtype) {
    return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
}

// Checks values (N, K) of a weight dtype; i8 and fp8 need scales, other types have none.
inline void check_matrix(const char* op, const Matrix& w) {
    const Tensor& values = w.values;
    const bool scaled = has_row_scales(values.dtype);
    const bool known = scaled || is_float(values.dtype) || is_quantized(values.dtype);
    require(!!values, op, ": expected weights (N, K), found none");
    require(values.rank == 2 && known, op,
            ": expected weights (N, K) of f32, f16, bf16, int8, fp8 or quantised blocks, found ",
            values);
    if (scaled)
        check_tensor(op, "the weights' scales", w.scales, Dtype::f32, {values.dim(0)});
    else
        require(!w.scales, op, ": expected scales with int8 and fp8 weights alone, found ",
                w.scales);
}

// Checks the matrices of `owners` ("experts"): some, all of one shape.
inline void check_matrices(const char* op, const char* owners, const std::vector<Matrix>& w) {
    require(!w.empty(), op, ": expected the matrices of ", owners, ", found none");
    const Tensor& first = w.front().values;
    for (const Matrix& one : w) {
        check_matrix(op, one);
        require(one.values.shape == first.shape, op, ": expected matrices of one shape, found ",
                first, " and ", one.values);
    }
}

// Checks an rms norm of that many channels.
inline void check_rms_norm(const char* op, const char* name, const Norm& norm, int64_t channels) {
    require(norm.kind == NormKind::rms && !norm.bias, op,
            ": expected an rms norm without bias for ", name);
    check_tensor(op, name, norm.weight, Dtype::f32, {channels});
}

// Checks a cache of keys or of values.
inline void check_cache(const char* op, const Tensor& cache) {
    require(cache && cache.rank == 4 &&
                (is_float(cache.dtype) || (cache.dtype == Dtype::q8_0 && cache.dim(3) % 32 == 0)),
            op,
            ": expected a cache (slots, H, capacity, D) of f32, f16 or bf16, or of q8_0 with D a "
            "multiple of 32, found ",
            cache);
}

// Checks a pair of caches.
inline void check_caches(const char* op, const Tensor& keys, const Tensor& values) {
    check_cache(op, keys);
    require(values && values.dtype == keys.dtype && values.shape == keys.shape, op,
            ": expected values like the keys, ", keys, ", found ", values);
}

// Checks the sequences of `packed` rows in all, over caches whose blocks have `capacity` keys.
inline void check_batch_layout(const char* op, const BatchLayout& rows, int64_t packed,
                               int64_t capacity) {
    constexpr int64_t kMostSequences = 65535;  // of a GPU's grid
    const Tensor& table = rows.block_table;
    require((table.rank == 1 || table.rank == 2) && table.dtype == Dtype::i32 &&
                table.dim(0) <= kMostSequences,
            op, ": expected block_table i32 (B) or (B, M) with B up to ", kMostSequences,
            ", found ", table);
    require(rows.blocks() > 0 && capacity > 0, op, ": expected blocks of positions, found ", table,
            " and blocks of ", capacity);
    const int64_t b = rows.sequences();
    capacity *= rows.blocks();
    check_tensor(op, "query_start", rows.query_start, Dtype::i32, {b + 1});
    check_tensor(op, "length", rows.length, Dtype::i32, {b});
    require(rows.max_queries <= packed && rows.max_length <= capacity, op, ": expected at most ",
            packed, " rows and ", capacity, " keys a sequence, found ", rows.max_queries, " and ",
            rows.max_length);
}

// Checks that every sequence's keys are in one block: kernels that do not read block tables.
inline void check_one_block(const char* op, const BatchLayout& rows) {
    require(rows.blocks() == 1, op, ": expected one block of the cache per sequence, found ",
            rows.block_table);
}

// Checks the values of index arrays that are on the host; the caches have `blocks` blocks of
// `capacity` positions. window: keys that a row sees, itself the newest; 0: all. Blocks before the
// first row's window are not read, and not checked.
inline void check_batch_layout_values(const char* op, const BatchLayout& rows, int64_t packed,
                                      int64_t blocks, int64_t capacity, int64_t window = 0) {
    const int64_t b = rows.sequences(), most = rows.blocks();
    const int32_t* start = rows.query_start.as<int32_t>();
    const int32_t* table = rows.block_table.as<int32_t>();
    const int32_t* length = rows.length.as<int32_t>();
    require(start[0] == 0 && start[b] == packed, op, ": expected query_start from 0 to ", packed,
            ", found ", start[0], " to ", start[b]);
    for (int64_t i = 0; i < b; ++i) {
        require(start[i] <= start[i + 1], op, ": query_start falls at sequence ", i);
        require(0 <= length[i] && length[i] <= most * capacity, op, ": sequence ", i, " has ",
                length[i], " keys, the cache has room for ", most * capacity);
        const int64_t used = std::max<int64_t>(1, (length[i] + capacity - 1) / capacity);
        const int64_t first = length[i] - (start[i + 1] - start[i]) + 1 - window;
        for (int64_t m = window > 0 ? std::max<int64_t>(0, first) / capacity : 0; m < used; ++m)
            require(0 <= table[i * most + m] && table[i * most + m] < blocks, op,
                    ": expected a block below ", blocks, ", found ", table[i * most + m],
                    " for sequence ", i);
    }
}

// Checks the epilogue of a product with n columns and y's type.
inline void check_epilogue(const char* op, const Tensor& y, int64_t n, const Epilogue& then) {
    if (then.bias) check_tensor(op, "bias", then.bias, Dtype::f32, {n});
    require(!then.residual || (then.residual.dtype == y.dtype && then.residual.size() == y.size()),
            op, ": expected a residual like y ", y, ", found ", then.residual);
}

// Checks x (T, C) and y of a norm: y like x, or of another type if x is f32, as on a GPU.
inline void check_normed(const char* op, const Tensor& y, const Tensor& x) {
    require(x.rank >= 1 && is_float(x.dtype) && x.dim(-1) > 0 && x.dim(-1) <= INT32_MAX, op,
            ": expected x (T, C) in f32, f16 or bf16, found ", x);
    const bool narrows = x.dtype == Dtype::f32 && is_float(y.dtype);
    require(y.rank >= 1 && y.dim(-1) == x.dim(-1) && y.rows() == x.rows() &&
                (y.dtype == x.dtype || narrows),
            op, ": expected y like x ", x, ", or of 16 bits where x is f32, found ", y);
}

// Checks n columns of `rows` rows of `dtype`.
inline void check_columns(const char* op, const char* name, const Columns& columns, int64_t rows,
                          int64_t n, Dtype dtype) {
    require(columns.rows.rank == 2 && columns.rows.dtype == dtype && is_float(dtype) &&
                columns.rows.dim(0) == rows && columns.first >= 0 &&
                columns.first + n <= columns.rows.dim(1),
            op, ": expected ", name, " ", name_of(dtype), " with ", rows, " rows and columns ",
            columns.first, " to ", columns.first + n, ", found ", columns.rows);
}

// Checks append_cache's arguments: x (T, W) has (2, H, D) from column `first`.
inline void check_append(const char* op, const Tensor& keys, const Tensor& values, const Tensor& x,
                         int64_t first, const BatchLayout& rows) {
    check_caches(op, keys, values);
    require(x.rank >= 2 && is_float(x.dtype), op,
            ": expected rows to append (T, W) in f32, f16 or bf16, found ", x);
    const int64_t heads = keys.dim(1), d = keys.dim(3);
    require(first >= 0 && first + 2 * heads * d <= x.dim(-1) && heads * d <= INT32_MAX / 2, op,
            ": expected columns ", first, " to ", first + 2 * heads * d, " to append, found ", x);
    check_batch_layout(op, rows, x.rows(), keys.dim(2));
}

}  // namespace hark
