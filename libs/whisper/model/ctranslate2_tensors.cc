#include "whisper/model/ctranslate2_tensors.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "whisper/model/ctranslate2_names.h"

namespace hark::whisper {
namespace {

constexpr uint32_t kMinVersion = 4, kMaxVersion = 6, kRevision = 3;
constexpr const char* kSpec = "WhisperSpec";
constexpr const char *kInt8 = "I8", *kInt16 = "I16";  // with scales

struct StoredDtype {
    const char* name;
    uint64_t bytes;
};

// Indexed by the file's dtype numbers.
constexpr StoredDtype kDtypes[] = {{"F32", 4}, {kInt8, 1}, {kInt16, 2},
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
    require(entry.shape.empty() && entry.dtype == kInt16, name(), ": '", variable,
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
    TensorEntry given = entry;
    if (entry.dtype == kInt8 || entry.dtype == kInt16) given.dtype = "F32";
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
    if (entry.dtype == kInt8)
        widen<int8_t>(tensor, stored, entry, first_row);
    else if (entry.dtype == kInt16)
        widen<int16_t>(tensor, stored, entry, first_row);
    else  // the file does not align its data
        std::memcpy(tensor.data, stored, tensor.bytes());
    return tensor;
}

bool Ctranslate2Tensors::has(const std::string& name) const {
    return file_.find(ctranslate2_place(name).variable) != nullptr;
}

bool Ctranslate2Tensors::stores_int8(const std::string& name) const {
    return file_.need(ctranslate2_place(name).variable).dtype == kInt8;
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
