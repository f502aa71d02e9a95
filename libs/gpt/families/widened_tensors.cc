#include "gpt/families/widened_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/half.h"
#include "kernels/cpu/cpu.h"
#include "kernels/runtime/parallel.h"

namespace hark::gpt {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr int64_t kWidenedRows = 64;  // at once: a cache line of a matrix that is stored (in, out)

ModuleParts packed_parts_of(SafetensorsDirectory& stored, const std::string& weight) {
    return {stored, weight.substr(0, weight.size() - kWeight.size())};
}

constexpr int64_t kBlock = 32;  // values of q4_0 and q8_0

// Whether blocks hold the matrix's numbers and scales unchanged.
bool fits_blocks(const PackedMatrix& matrix, int64_t rows, int64_t columns) {
    if (matrix.bits == 0 || columns % kBlock != 0 || matrix.neighbours % kBlock != 0) return false;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; c += matrix.neighbours)
            if (const float scale = matrix.scale(r, c); !std::isfinite(scale) || !fits_f16(scale))
                return false;
    return true;
}

// Writes the f16 `scale` and the numbers that `values` are multiples of: q8_0's are bytes; q4_0's
// byte j has numbers j and j + 16, the lower one in the lower bits, each plus 8.
void write_block(std::byte* to, Dtype type, const float* values, float scale) {
    const f16_t half = to_f16(scale);
    std::memcpy(to, &half, sizeof half);
    to += sizeof half;
    const auto number = [&](int64_t i) {
        return scale == 0 ? 0 : static_cast<int>(std::lrint(values[i] / scale));
    };
    if (type == Dtype::q8_0) {
        for (int64_t i = 0; i < kBlock; ++i) to[i] = static_cast<std::byte>(number(i));
    } else {
        for (int64_t i = 0; i < kBlock / 2; ++i)
            to[i] = static_cast<std::byte>((number(i) + 8) | (number(i + kBlock / 2) + 8) << 4);
    }
}

void write_blocks(std::byte* to, Dtype type, const PackedMatrix& matrix, int64_t first,
                  int64_t count, int64_t columns, const float* values) {
    for (int64_t r = first; r < first + count; ++r)
        for (int64_t c = 0; c < columns; c += kBlock, values += kBlock) {
            write_block(to, type, values, matrix.scale(r, c));
            to += block_size(type).bytes;
        }
}

}  // namespace

Dtype WidenedTensors::dtype_of(const PackedMatrix& matrix, int64_t rows, int64_t columns) const {
    if (fits_blocks(matrix, rows, columns)) return matrix.bits == 4 ? Dtype::q4_0 : Dtype::q8_0;
    return matrix.dtype == Dtype::f32 ? model_type_ : matrix.dtype;
}

bool WidenedTensors::is_packed(const std::string& name) const {
    return name.ends_with(kWeight) && format_.packs(packed_parts_of(stored_, name));
}

PackedMatrix WidenedTensors::open(const std::string& name, int64_t rows, int64_t columns) const {
    return format_.open(packed_parts_of(stored_, name), rows, columns);
}

Tensor WidenedTensors::take(const std::string& name, std::initializer_list<int64_t> shape) {
    if (shape.size() != 2 || !is_packed(name)) return stored_.take(name, shape);
    const int64_t rows = shape.begin()[0], columns = shape.begin()[1];
    const PackedMatrix packed = open(name, rows, columns);
    Tensor tensor(nullptr, dtype_of(packed, rows, columns), shape);
    widened_.push_back(std::make_unique_for_overwrite<std::byte[]>(tensor.bytes()));
    tensor.data = widened_.back().get();
    const int64_t pieces = (rows - 1) / kWidenedRows + 1;
    const auto row_size = static_cast<int64_t>(row_bytes(tensor.dtype, columns));
    const int64_t workers = std::clamp<int64_t>(threads_, 1, pieces);
    const int64_t buffer = std::min(kWidenedRows, rows) * columns;
    std::vector<float> buffers(static_cast<size_t>(workers * buffer));
    parallel_for(static_cast<int>(workers), workers, [&](int64_t worker) {
        float* const values = buffers.data() + worker * buffer;
        for (int64_t i = worker * pieces / workers; i < (worker + 1) * pieces / workers; ++i) {
            const int64_t first = i * kWidenedRows, count = std::min(kWidenedRows, rows - first);
            packed.read(first, count, values);
            std::byte* const rows_of = static_cast<std::byte*>(tensor.data) + first * row_size;
            if (is_quantized(tensor.dtype))
                write_blocks(rows_of, tensor.dtype, packed, first, count, columns, values);
            else
                cpu_kernels().narrow(rows_of, tensor.dtype, values, count * columns);
        }
    });
    return tensor;
}

}  // namespace hark::gpt
