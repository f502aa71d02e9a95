#include "gpt/families/widened_tensors.h"

#include <algorithm>

#include "kernels/cpu/cpu.h"
#include "kernels/runtime/parallel.h"

namespace hark::gpt {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr int64_t kWidenedRows = 64;  // at once: a cache line of a matrix that is stored (in, out)

ModuleParts parts_of(SafetensorsDirectory& stored, const std::string& weight) {
    return {stored, weight.substr(0, weight.size() - kWeight.size())};
}

}  // namespace

bool WidenedTensors::is_packed(const std::string& name) const {
    return name.ends_with(kWeight) && format_.packs(parts_of(stored_, name));
}

PackedMatrix WidenedTensors::open(const std::string& name, int64_t rows, int64_t columns) const {
    return format_.open(parts_of(stored_, name), rows, columns);
}

Tensor WidenedTensors::take(const std::string& name, std::initializer_list<int64_t> shape) {
    if (shape.size() != 2 || !is_packed(name)) return stored_.take(name, shape);
    const int64_t rows = shape.begin()[0], columns = shape.begin()[1];
    const PackedMatrix packed = open(name, rows, columns);
    Tensor tensor(nullptr, dtype_of(packed), shape);
    widened_.push_back(std::make_unique_for_overwrite<std::byte[]>(tensor.bytes()));
    tensor.data = widened_.back().get();
    const int64_t pieces = (rows - 1) / kWidenedRows + 1;
    const auto row_size = static_cast<int64_t>(size_of(tensor.dtype)) * columns;
    const int64_t workers = std::clamp<int64_t>(threads_, 1, pieces);
    const int64_t buffer = std::min(kWidenedRows, rows) * columns;
    std::vector<float> buffers(static_cast<size_t>(workers * buffer));
    parallel_for(static_cast<int>(workers), workers, [&](int64_t worker) {
        float* const values = buffers.data() + worker * buffer;
        for (int64_t i = worker * pieces / workers; i < (worker + 1) * pieces / workers; ++i) {
            const int64_t first = i * kWidenedRows, count = std::min(kWidenedRows, rows - first);
            packed.read(first, count, values);
            cpu_kernels().narrow(widened_.back().get() + first * row_size, tensor.dtype, values,
                                 count * columns);
        }
    });
    return tensor;
}

}  // namespace hark::gpt
