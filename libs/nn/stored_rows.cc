#include "nn/stored_rows.h"

#include <algorithm>

#include "kernels/cpu/cpu.h"

namespace hark {
namespace {

const std::byte* at(const Tensor& stored, int64_t element) {
    return static_cast<const std::byte*>(stored.data) +
           element * static_cast<int64_t>(size_of(stored.dtype));
}

}  // namespace

void widen_rows(float* to, const Tensor& stored, int64_t first, int64_t count) {
    const int64_t size = stored.dim(1);
    if (!is_quantized(stored.dtype))
        return cpu_kernels().widen(to, at(stored, first * size), stored.dtype, count * size);
    const auto* blocks = static_cast<const std::byte*>(stored.data);
    const int64_t bytes = static_cast<int64_t>(row_bytes(stored.dtype, size));
    cpu_kernels().dequantize(to, blocks + first * bytes, stored.dtype, count * size);
}

void widen_columns(float* rows, const Tensor& stored, int64_t first, int64_t count) {
    // A cache line of each row at a time: rows are so far apart that caches hold few at once.
    constexpr int64_t kLine = 64 / sizeof(float);
    const int64_t size = stored.dim(0), stride = stored.dim(1);
    float columns[kLine][kRowsAtOnce];
    for (int64_t k = 0; k < size; k += kLine) {
        const int64_t width = std::min(kLine, size - k);
        for (int64_t j = 0; j < width; ++j)
            cpu_kernels().widen(columns[j], at(stored, (k + j) * stride + first), stored.dtype,
                                count);
        for (int64_t i = 0; i < count; ++i)
            for (int64_t j = 0; j < width; ++j) rows[i * size + k + j] = columns[j][i];
    }
}

Tensor widened_copy(const Tensor& stored, std::vector<std::vector<float>>& owner) {
    auto& values = owner.emplace_back(static_cast<size_t>(stored.size()));
    widen_rows(values.data(), stored, 0, stored.dim(0));
    return Tensor(values.data(), Dtype::f32, {stored.dim(0), stored.dim(1)});
}

}  // namespace hark
