// Checks at the door of a kernel.
#pragma once

#include <initializer_list>

#include "core/context.h"
#include "core/error.h"
#include "core/tensor.h"
#include "kernels/ops.h"

namespace hark {

// Throws Error `op: expected NAME f32 (2, 3), found ...` unless the tensor has that dtype and
// shape. A dimension of -1 takes any length.
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

// values (N, K) of a dtype of weights, with scales where it is i8.
inline void check_matrix(const char* op, const Matrix& w) {
    const Tensor& values = w.values;
    const bool known = values.dtype == Dtype::f32 || values.dtype == Dtype::f16 ||
                       values.dtype == Dtype::bf16 || values.dtype == Dtype::i8 ||
                       is_quantized(values.dtype);
    require(!!values, op, ": expected weights (N, K), found none");
    require(values.rank == 2 && known, op,
            ": expected weights (N, K) of f32, f16, bf16, int8 or quantised blocks, found ",
            values);
    if (values.dtype == Dtype::i8)
        check_tensor(op, "the weights' scales", w.scales, Dtype::f32, {values.dim(0)});
}

// Whether the tensor is f32, f16 or bf16.
inline bool is_float(Dtype dtype) {
    return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
}

// A cache of keys or of values.
inline void check_cache(const char* op, const Tensor& cache) {
    require(cache && cache.rank == 4 && is_float(cache.dtype), op,
            ": expected a cache (slots, H, capacity, D) of f32, f16 or bf16, found ", cache);
}

// Keys and values alike.
inline void check_caches(const char* op, const Tensor& keys, const Tensor& values) {
    check_cache(op, keys);
    require(values && values.dtype == keys.dtype && values.shape == keys.shape, op,
            ": expected values like the keys, ", keys, ", found ", values);
}

// The host arrays of rows that are `packed` in all, over a cache of `slots` slots.
inline void check_ragged(const char* op, const Ragged& rows, int64_t packed, int64_t slots,
                         int64_t capacity) {
    require(rows.slot.rank == 1, op, ": expected slot i32 (B), found ", rows.slot);
    const int64_t b = rows.sequences();
    check_tensor(op, "slot", rows.slot, Dtype::i32, {b});
    check_tensor(op, "query_start", rows.query_start, Dtype::i32, {b + 1});
    check_tensor(op, "length", rows.length, Dtype::i32, {b});
    const int32_t* start = rows.query_start.as<int32_t>();
    const int32_t* slot = rows.slot.as<int32_t>();
    const int32_t* length = rows.length.as<int32_t>();
    require(start[0] == 0 && start[b] == packed, op, ": expected query_start from 0 to ", packed,
            ", found ", start[0], " to ", start[b]);
    for (int64_t i = 0; i < b; ++i) {
        require(start[i] <= start[i + 1], op, ": query_start falls at sequence ", i);
        require(0 <= slot[i] && slot[i] < slots, op, ": expected a slot below ", slots, ", found ",
                slot[i], " for sequence ", i);
        require(0 <= length[i] && length[i] <= capacity, op, ": sequence ", i, " has ", length[i],
                " keys, the cache has room for ", capacity);
    }
}

}  // namespace hark
