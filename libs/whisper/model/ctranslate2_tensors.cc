#include "whisper/model/ctranslate2_tensors.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "whisper/model/ctranslate2_names.h"

namespace hark::whisper {
namespace {

constexpr uint32_t kMinVersion = 4, kMaxVersion = 6, kRevision = 3;
constexpr const char* kSpec = "WhisperSpec";

struct StoredDtype {
    const char* name;
    uint64_t bytes;
};

// Indexed by the file's dtype numbers.
constexpr StoredDtype kDtypes[] = {{"F32", 4}, {"I8", 1},  {"I16", 2},
                                   {"I32", 4}, {"F16", 2}, {"BF16", 2}};

std::string read_name(ByteCursor& in, const std::string& where) {
    const std::string_view text = in.take(in.number<uint16_t>());
    require(text.ends_with('\0'), where, ": expected a name before byte ", in.at());
    return std::string(text.substr(0, text.size() - 1));
}

}  // namespace

Ctranslate2Variables::Ctranslate2Variables(const std::filesystem::path& path) : file_(path) {
    ByteCursor in(file_.text(), name());
    read_header(in);
    for (auto left = in.number<uint32_t>(); left > 0; --left) read_variable(in);
    for (auto left = in.number<uint32_t>(); left > 0; --left) {
        const std::string alias = read_name(in, name());
        aliases_[alias] = read_name(in, name());
    }
    require(in.left() == 0, name(), ": ", in.left(), " bytes after what its header announces");
}

void Ctranslate2Variables::read_header(ByteCursor& in) {
    const auto version = in.number<uint32_t>();
    require(kMinVersion <= version && version <= kMaxVersion, name(),
            ": expected a CTranslate2 model of version ", kMinVersion, " to ", kMaxVersion,
            ", found ", version);
    const std::string spec = read_name(in, name());
    require(spec == kSpec, name(), ": expected ", kSpec, ", found '", spec, "'");
    const auto revision = in.number<uint32_t>();
    require(revision == kRevision, name(), ": expected revision ", kRevision, " of ", kSpec,
            ", found ", revision);
}

void Ctranslate2Variables::read_variable(ByteCursor& in) {
    TensorEntry entry;
    entry.name = read_name(in, name());
    const std::string at = concat(name(), ": '", entry.name, "'");
    uint64_t size = 1;
    for (int rank = in.number<uint8_t>(); rank > 0; --rank) {
        const auto dim = in.number<uint32_t>();
        size *= dim;
        require(size <= UINT32_MAX, at, ": has more values than the format has bytes");
        entry.shape.push_back(dim);
    }
    const size_t dtype = in.number<uint8_t>();
    require(dtype < std::size(kDtypes), at, ": unknown dtype ", dtype);
    entry.dtype = kDtypes[dtype].name;
    const auto bytes = in.number<uint32_t>();
    require(size * kDtypes[dtype].bytes == bytes, at, ": its shape needs ", size, " values of ",
            entry.dtype, ", found ", bytes, " bytes");
    entry.begin = in.at();
    in.take(bytes);
    entry.end = in.at();
    const std::string key = entry.name;
    require(variables_.try_emplace(key, std::move(entry)).second, at, " is there twice");
}

const TensorEntry* Ctranslate2Variables::find(const std::string& variable) const {
    const auto alias = aliases_.find(variable);
    const auto found = variables_.find(alias == aliases_.end() ? variable : alias->second);
    return found == variables_.end() ? nullptr : &found->second;
}

const TensorEntry& Ctranslate2Variables::need(const std::string& variable) const {
    const TensorEntry* found = find(variable);
    require(found, name(), ": expected '", variable, "', found none");
    return *found;
}

int64_t Ctranslate2Variables::number(const std::string& variable) const {
    const TensorEntry& entry = need(variable);
    require(entry.shape.empty() && entry.dtype == "I16", name(), ": '", variable,
            "': expected a number of 16 bits");
    int16_t value = 0;
    std::memcpy(&value, data(entry), sizeof value);
    return value;
}

int64_t Ctranslate2Variables::dim(const std::string& variable, size_t i) const {
    const TensorEntry& entry = need(variable);
    require(i < entry.shape.size(), name(), ": '", variable, "': expected more than ", i,
            " dimensions, found ", entry.shape.size());
    return entry.shape[i];
}

void Ctranslate2Variables::forget(const TensorEntry& entry) const {
    file_.forget(entry.begin, entry.end - entry.begin);
}

Tensor Ctranslate2Tensors::take(const std::string& name, std::initializer_list<int64_t> shape) {
    const Ctranslate2Place place = ctranslate2_place(name);
    const TensorEntry& entry = file_.need(place.variable);
    Tensor tensor = tensor_of(entry, file_.data(entry), file_.name());
    Tensor expected(nullptr, tensor.dtype, shape);
    expected.shape[0] *= place.parts;
    require(tensor.rank == expected.rank && tensor.shape == expected.shape, file_.name(), ": '",
            entry.name, "': expected ", expected, ", found ", tensor);
    taken_.push_back(&entry);
    const int64_t rows = tensor.dim(0) / place.parts;
    tensor = tensor.slice(place.part * rows, (place.part + 1) * rows);
    const auto* stored = static_cast<const std::byte*>(tensor.data);
    if (tensor.dtype == Dtype::i8)
        return widened(tensor, stored, place.part * rows, entry.name + "_scale");
    // The file does not align its data.
    tensor.data = buffer(tensor.bytes());
    std::memcpy(tensor.data, stored, tensor.bytes());
    return tensor;
}

bool Ctranslate2Tensors::has(const std::string& name) const {
    return file_.find(ctranslate2_place(name).variable) != nullptr;
}

bool Ctranslate2Tensors::stores_int8(const std::string& name) const {
    return file_.need(ctranslate2_place(name).variable).dtype == "I8";
}

void Ctranslate2Tensors::forget_taken() {
    for (const TensorEntry* entry : taken_) file_.forget(*entry);
    taken_.clear();
    buffers_.clear();
}

std::byte* Ctranslate2Tensors::buffer(size_t bytes) {
    return buffers_.emplace_back(std::make_unique<std::byte[]>(bytes)).get();
}

// value = int8 / scale of its row.
Tensor Ctranslate2Tensors::widened(Tensor tensor, const std::byte* stored, int64_t first_row,
                                   const std::string& scales_name) {
    const TensorEntry& scales = file_.need(scales_name);
    const int64_t rows = tensor.dim(0);
    require(
        scales.dtype == "F32" && scales.shape.size() == 1 && scales.shape[0] >= first_row + rows,
        file_.name(), ": '", scales.name, "': expected a scale of 32 bits for each row");
    const int64_t size = tensor.size() / std::max<int64_t>(rows, 1);
    tensor.dtype = Dtype::f32;
    tensor.data = buffer(tensor.bytes());
    float* to = tensor.as<float>();
    for (int64_t row = 0; row < rows; ++row) {
        float scale = 0;
        std::memcpy(&scale,
                    file_.data(scales) + static_cast<size_t>(first_row + row) * sizeof scale,
                    sizeof scale);
        require(scale > 0, file_.name(), ": '", scales.name, "': expected a scale above 0, found ",
                scale);
        for (int64_t i = 0; i < size; ++i, ++stored)
            *to++ = static_cast<float>(static_cast<int8_t>(*stored)) / scale;
    }
    return tensor;
}

}  // namespace hark::whisper
