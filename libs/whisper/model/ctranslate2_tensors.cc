#include "whisper/model/ctranslate2_tensors.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "whisper/model/ctranslate2_names.h"

namespace hark::whisper {

Tensor Ctranslate2Tensors::take(const std::string& name, std::initializer_list<int64_t> shape) {
    const Ctranslate2Place place = ctranslate2_place(name);
    const TensorEntry& entry = file_.need(place.variable);
    TensorEntry given = entry;
    if (entry.dtype == kCtranslate2Int8 || entry.dtype == kCtranslate2Int16) given.dtype = "F32";
    Tensor tensor = tensor_of(given, nullptr, file_.name());
    Tensor expected(nullptr, tensor.dtype, shape);
    expected.shape[0] *= place.parts;
    require(tensor.rank == expected.rank && tensor.shape == expected.shape, file_.name(), ": '",
            entry.name, "': expected ", expected, ", found ", tensor);
    taken_.push_back(&entry);
    const int64_t first_row = place.part * (tensor.dim(0) / place.parts);
    tensor.shape[0] /= place.parts;
    tensor.data = buffer(tensor.bytes());
    const std::byte* stored = file_.data(entry) + (entry.end - entry.begin) /
                                                      static_cast<uint64_t>(place.parts) *
                                                      static_cast<uint64_t>(place.part);
    if (entry.dtype == kCtranslate2Int8)
        widen<int8_t>(tensor, stored, entry, first_row);
    else if (entry.dtype == kCtranslate2Int16)
        widen<int16_t>(tensor, stored, entry, first_row);
    else  // the file does not align its data
        std::memcpy(tensor.data, stored, tensor.bytes());
    return tensor;
}

bool Ctranslate2Tensors::has(const std::string& name) const {
    return file_.find(ctranslate2_place(name).variable) != nullptr;
}

bool Ctranslate2Tensors::stores_int8(const std::string& name) const {
    return file_.need(ctranslate2_place(name).variable).dtype == kCtranslate2Int8;
}

void Ctranslate2Tensors::release_tensors() {
    for (const TensorEntry* entry : taken_) file_.forget(*entry);
    taken_.clear();
    buffers_.clear();
}

std::byte* Ctranslate2Tensors::buffer(size_t bytes) {
    return buffers_.emplace_back(std::make_unique<std::byte[]>(bytes)).get();
}

// value = integer / scale: int8 has a scale per row, int16 one per variable.
template <class Integer>
void Ctranslate2Tensors::widen(const Tensor& tensor, const std::byte* stored,
                               const TensorEntry& entry, int64_t first_row) {
    constexpr bool kPerRow = sizeof(Integer) == 1;
    const TensorEntry& scales = file_.need(entry.name + "_scale");
    const int64_t rows = tensor.dim(0);
    if (kPerRow)
        require(scales.dtype == "F32" && scales.shape.size() == 1 &&
                    scales.shape[0] >= first_row + rows,
                file_.name(), ": '", scales.name, "': expected a scale of 32 bits for each row");
    else
        require(scales.dtype == "F32" && scales.shape.empty(), file_.name(), ": '", scales.name,
                "': expected one scale of 32 bits");
    const int64_t size = tensor.size() / std::max<int64_t>(rows, 1);
    float* to = tensor.as<float>();
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t at = kPerRow ? first_row + row : 0;
        float scale = 0;
        std::memcpy(&scale, file_.data(scales) + static_cast<size_t>(at) * sizeof scale,
                    sizeof scale);
        require(scale > 0, file_.name(), ": '", scales.name, "': expected a scale above 0, found ",
                scale);
        for (int64_t i = 0; i < size; ++i, stored += sizeof(Integer)) {
            Integer value = 0;
            std::memcpy(&value, stored, sizeof value);
            *to++ = static_cast<float>(value) / scale;
        }
    }
}

}  // namespace hark::whisper
