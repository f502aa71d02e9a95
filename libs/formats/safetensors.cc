#include "formats/safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/half.h"
#include "core/json/json.h"

namespace hark {
namespace {

using nlohmann::json;

// A hundred thousand tensors' worth: parsing takes up to 40 times the text's memory, so that the
// format's own limit of 100 MB would let a small file take gigabytes.
constexpr uint64_t kMaxFileHeader = 16 << 20;

size_t element_bytes(const std::string& dtype) {
    static const std::map<std::string, size_t> kBytes = {
        {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
        {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
        {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};
    const auto found = kBytes.find(dtype);
    return found == kBytes.end() ? 0 : found->second;
}

TensorEntry parse_entry(const std::string& name, const json& value, const std::string& where) {
    const std::string at = concat(where, ": tensor '", name, "'");
    require(value.is_object() && value.contains("dtype") && value["dtype"].is_string() &&
                value.contains("shape") && value["shape"].is_array() &&
                value.contains("data_offsets") && value["data_offsets"].is_array() &&
                value["data_offsets"].size() == 2,
            at, ": expected dtype, shape and two data_offsets");
    TensorEntry entry;
    entry.name = name;
    entry.dtype = value["dtype"].get<std::string>();
    const size_t width = element_bytes(entry.dtype);
    require(width > 0, at, ": unknown dtype '", entry.dtype, "'");
    uint64_t bytes = width;
    for (const json& dim : value["shape"]) {
        require(dim.is_number_unsigned(), at, ": a dimension is not a whole number");
        const uint64_t n = dim.get<uint64_t>();
        require(!__builtin_mul_overflow(bytes, n, &bytes) && bytes <= INT64_MAX && n <= INT64_MAX,
                at, ": its size overflows");
        entry.shape.push_back(static_cast<int64_t>(n));
    }
    for (const json& offset : value["data_offsets"])
        require(offset.is_number_unsigned(), at, ": an offset is not a whole number");
    entry.begin = value["data_offsets"][0].get<uint64_t>();
    entry.end = value["data_offsets"][1].get<uint64_t>();
    require(entry.begin <= entry.end && entry.end - entry.begin == bytes, at, ": its shape needs ",
            bytes, " bytes, its offsets are ", entry.begin, " to ", entry.end);
    return entry;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& where) {
    const json root = parse_json(text, where);
    require(root.is_object(), where, ": the header is not a JSON object");
    SafetensorsHeader header;
    for (const auto& [name, value] : root.items()) {
        if (name != "__metadata__") {
            header.tensors.push_back(parse_entry(name, value, where));
            continue;
        }
        require(value.is_object(), where, ": __metadata__ is not an object");
        for (const auto& [key, entry] : value.items()) {
            require(entry.is_string(), where, ": __metadata__ '", key, "' is not a string");
            header.metadata[key] = entry.get<std::string>();
        }
    }
    std::sort(header.tensors.begin(), header.tensors.end(),
              [](const TensorEntry& a, const TensorEntry& b) {
                  return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
              });
    for (const TensorEntry& entry : header.tensors) {
        require(entry.begin == header.data_bytes, where, ": tensor '", entry.name,
                "' begins at byte ", entry.begin, ", expected ", header.data_bytes,
                " (tensors may neither overlap nor leave holes)");
        header.data_bytes = entry.end;
    }
    return header;
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
    nlohmann::ordered_json root;
    if (!header.metadata.empty()) root["__metadata__"] = header.metadata;
    for (const TensorEntry& entry : header.tensors)
        root[entry.name] = {{"dtype", entry.dtype},
                            {"shape", entry.shape},
                            {"data_offsets", {entry.begin, entry.end}}};
    std::string text = json_text(root);
    text.append((8 - text.size() % 8) % 8, ' ');
    uint64_t length = text.size();
    char field[8];
    for (char& byte : field) {
        byte = static_cast<char>(length & 0xff);
        length >>= 8;
    }
    return std::string(field, 8) + text;
}

Tensor tensor_of(const TensorEntry& entry, const void* data, const std::string& where) {
    const std::string at = concat(where, ": tensor '", entry.name, "'");
    require(entry.shape.size() <= Tensor::kMaxRank, at, ": expected at most ", Tensor::kMaxRank,
            " dimensions, found ", entry.shape.size());
    for (Dtype dtype :
         {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i8, Dtype::i32, Dtype::i64, Dtype::u8}) {
        if (entry.dtype != safetensors_name(dtype)) continue;
        Tensor view(const_cast<void*>(data), dtype, {});
        view.rank = static_cast<int>(entry.shape.size());
        std::copy(entry.shape.begin(), entry.shape.end(), view.shape.begin());
        return view;
    }
    fail(at, ": cannot compute with dtype ", entry.dtype);
}

void write_values(ByteWriter& writer, std::span<const float> values, Dtype dtype,
                  const std::string& name) {
    if (dtype == Dtype::f32) return writer.write(values.data(), values.size_bytes());
    std::vector<uint16_t> rounded(values.size());
    uint16_t* to = rounded.data();
    for (const float value : values) {
        *to = dtype == Dtype::f16 ? to_f16(value).bits : to_bf16(value).bits;
        if (dtype == Dtype::f16 && (*to & 0x7c00) == 0x7c00)
            fail(name, ": expected values that f16 can hold, found ", value);
        ++to;
    }
    writer.write(rounded.data(), rounded.size() * sizeof(uint16_t));
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
    require(file_.size() >= 8, file_.name(), ": expected a safetensors file, found ", file_.size(),
            " bytes");
    uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | std::to_integer<uint64_t>(file_.data()[i]);
    require(length <= kMaxFileHeader && length <= file_.size() - 8, file_.name(),
            ": expected a safetensors file, found a header of ", length, " bytes in a file of ",
            file_.size());
    header_ =
        parse_safetensors_header(file_.text().substr(8, static_cast<size_t>(length)), file_.name());
    data_offset_ = 8 + length;
    const uint64_t held = file_.size() - data_offset_;
    require(held == header_.data_bytes, file_.name(), ": its header needs ", header_.data_bytes,
            " bytes of data, the file holds ", held,
            held < header_.data_bytes ? " (truncated?)" : "");
    for (size_t i = 0; i < header_.tensors.size(); ++i) places_[header_.tensors[i].name] = i;
}

const TensorEntry* SafetensorsFile::find(const std::string& name) const {
    const auto found = places_.find(name);
    return found == places_.end() ? nullptr : &header_.tensors[found->second];
}

Tensor SafetensorsFile::tensor(const TensorEntry& entry) const {
    return tensor_of(entry, data(entry), file_.name());
}

void SafetensorsFile::forget(const TensorEntry& entry) const {
    file_.forget(data_offset_ + entry.begin, entry.end - entry.begin);
}

}  // namespace hark
