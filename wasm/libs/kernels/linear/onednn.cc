// Products in place of oneDNN's, on one thread: panels of 8 columns, 4 rows at a time, in vectors
// of 4 floats (kernels/cpu/products.h). A sum adds its terms in their order, without fused
// multiplication, in runs of 256 terms; then the sums of the runs in their order.
#include "kernels/linear/onednn.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/cpu.h"

namespace hark::onednn {
namespace {

constexpr int64_t kTileRows = 64, kTileColumns = 64;  // 16 KB of sums, which stay in the cache

// Columns [begin, begin + n) of b (k, ...) in panels; the last panel is filled up with zeros.
void pack_columns(float* packed, const Factor& b, int64_t begin, int64_t n, int64_t k) {
    const int64_t panel = cpu_kernels().panel;
    const int64_t next = b.transposed ? b.stride : 1, down = b.transposed ? 1 : b.stride;
    for (int64_t first = 0; first < n; first += panel)
        for (int64_t i = 0; i < panel; ++i) {
            const float* column = b.values + (begin + first + i) * next;
            float* to = packed + first * k + i;
            for (int64_t row = 0; row < k; ++row)
                to[row * panel] = first + i < n ? column[row * down] : 0;
        }
}

// a (m, k), row after row.
std::vector<float> untransposed(const Factor& a, int64_t m, int64_t k) {
    std::vector<float> rows(static_cast<size_t>(m * k));
    for (int64_t row = 0; row < m; ++row)
        for (int64_t i = 0; i < k; ++i)
            rows[static_cast<size_t>(row * k + i)] = a.values[i * a.stride + row];
    return rows;
}

}  // namespace

void multiply(int, float* c, int64_t ldc, const Factor& a, const Factor& b, int64_t m, int64_t n,
              int64_t k, bool accumulate) {
    static_assert(kTileColumns % 16 == 0, "whole panels");
    if (a.transposed) {
        const std::vector<float> rows = untransposed(a, m, k);
        return multiply(1, c, ldc, {rows.data(), k}, b, m, n, k, accumulate);
    }
    std::vector<float> packed(static_cast<size_t>(kTileColumns * k));
    float sums[kTileRows * kTileColumns];
    for (int64_t column = 0; column < n; column += kTileColumns) {
        const int64_t width = std::min(kTileColumns, n - column);
        pack_columns(packed.data(), b, column, width, k);
        for (int64_t row = 0; row < m; row += kTileRows) {
            const int64_t rows = std::min(kTileRows, m - row);
            cpu_kernels().multiply_packed(sums, kTileColumns, a.values + row * a.stride, a.stride,
                                          packed.data(), rows, width, k, k, false);
            for (int64_t i = 0; i < rows; ++i) {
                float* to = c + (row + i) * ldc + column;
                const float* from = sums + i * kTileColumns;
                for (int64_t j = 0; j < width; ++j) to[j] = accumulate ? to[j] + from[j] : from[j];
            }
        }
    }
}

// Only kernels of other processors ask for them (CpuKernels::has_bf16, has_int8).
void multiply(int, float*, int64_t, const bf16_t*, int64_t, const bf16_t*, int64_t, int64_t,
              int64_t) {
    fail("internal error: a product of bf16 on a processor without it");
}

void multiply(int, int32_t*, int64_t, const int8_t*, int64_t, const int8_t*, int64_t, int64_t,
              int64_t) {
    fail("internal error: a product of int8 on a processor without it");
}

}  // namespace hark::onednn
