// How the CPU's products of few rows are cut into pieces, and their epilogues.
#pragma once

#include <algorithm>

#include "kernels/cpu/cpu.h"
#include "kernels/ops.h"
#include "kernels/runtime/parallel.h"

namespace hark {

inline constexpr int64_t kFewColumns = 16;  // outputs per piece; 16 x 16 sums on the stack

// An Epilogue's pointers; each may be null. Gated products, in panels only, have no residual.
struct EpiloguePointers {
    const float* bias;
    const float* residual;
    Activation activation;
    bool gated = false;  // y (T, N / 2) = activation(first half) * second half
};

inline EpiloguePointers pointers_of(const Epilogue& then) {
    return {static_cast<const float*>(then.bias.data),
            static_cast<const float*>(then.residual.data), then.activation};
}

// base + offset, or null.
inline const float* at(const float* base, int64_t offset) { return base ? base + offset : nullptr; }

// Threads that in_pieces() uses.
inline int64_t worker_count(const Context& ctx, int64_t n_size) {
    return std::min<int64_t>(ctx.threads, (n_size + kFewColumns - 1) / kFewColumns);
}

// y's columns, kFewColumns at a time, of up to kFewRowsOnCpu rows: products(worker, sums, begin, n)
// writes the sums of columns [begin, begin + n) of all rows, kFewColumns apart; then the epilogue.
// Workers have numbers below worker_count().
template <class Products>
void in_pieces(Context& ctx, float* y, int64_t t_size, int64_t n_size, const EpiloguePointers& then,
               const Products& products) {
    const CpuKernels& cpu = cpu_kernels();
    const int64_t pieces = (n_size + kFewColumns - 1) / kFewColumns;
    const int64_t workers = worker_count(ctx, n_size);
    parallel_for(ctx.threads, workers, [&](int64_t worker) {
        const int64_t last = std::min((worker + 1) * pieces / workers * kFewColumns, n_size);
        int64_t begin = worker * pieces / workers * kFewColumns;
        for (; begin < last; begin += kFewColumns) {
            const int64_t n = std::min(kFewColumns, last - begin);
            float sums[kFewRowsOnCpu * kFewColumns];
            products(worker, sums, begin, n);
            for (int64_t t = 0; t < t_size; ++t) {
                const int64_t place = t * n_size + begin;
                cpu.epilogue(y + place, sums + t * kFewColumns, at(then.bias, begin),
                             at(then.residual, place), n, then.activation);
            }
        }
    });
}

}  // namespace hark
