// The safetensors format: 8-byte little-endian header length, JSON header, data.
// Model files and the documents of a tensor stream share this reader.
// Source: the format's description at github.com/huggingface/safetensors (README, "Format").
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/files/io.h"
#include "core/files/mapped_file.h"
#include "core/tensor.h"

namespace hark {

using Metadata = std::map<std::string, std::string>;

// One tensor of a header: [begin, end) counts bytes from the first byte after the header.
struct TensorEntry {
    std::string name;
    std::string dtype;  // as written: "F32", also types that hark does not compute with ("F64")
    std::vector<int64_t> shape;
    uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
    Metadata metadata;
    std::vector<TensorEntry> tensors;  // in the order of their data
    uint64_t data_bytes = 0;
};

// Parses the JSON of a header. Throws Error that begins with `where` and says what is wrong:
// not JSON, a size that overflows or does not fit its shape, offsets that overlap or leave holes.
SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& where);

// The length field, the JSON padded with spaces to a multiple of 8 bytes. Offsets of `tensors`
// are taken unchanged.
std::string format_safetensors_header(const SafetensorsHeader& header);

// The tensor of an entry whose data begins at `data`. Throws Error where the dtype is not one that
// hark computes with, or the rank is over 4.
Tensor tensor_of(const TensorEntry& entry, const void* data, const std::string& where);

// Writes values as a tensor's data in f32, f16 or bf16, rounded to nearest even. Throws Error that
// begins with `name` for a value beyond f16.
void write_values(ByteWriter& writer, std::span<const float> values, Dtype dtype,
                  const std::string& name);

// The tensors of one file, or of a sharded checkpoint, mapped into memory.
class SafetensorsFile {
  public:
    // Throws Error naming the file where it is no safetensors file.
    explicit SafetensorsFile(const std::filesystem::path& path);

    const Metadata& metadata() const { return header_.metadata; }
    const std::vector<TensorEntry>& entries() const { return header_.tensors; }
    // nullptr if there is none of that name.
    const TensorEntry* find(const std::string& name) const;
    Tensor tensor(const TensorEntry& entry) const;
    // The tensor's bytes, of any dtype; not aligned.
    const std::byte* data(const TensorEntry& entry) const {
        return file_.data() + data_offset_ + entry.begin;
    }
    // Lets the tensor's pages go once its values have been taken.
    void forget(const TensorEntry& entry) const;
    // Whether the address is in the file.
    bool holds(const void* at) const { return file_.holds(at); }
    const std::string& name() const { return file_.name(); }

  private:
    MappedFile file_;
    SafetensorsHeader header_;
    std::unordered_map<std::string, size_t> places_;  // by name, in header_.tensors
    uint64_t data_offset_ = 0;
};

}  // namespace hark
