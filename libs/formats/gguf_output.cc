#include "formats/gguf_output.h"

#include "core/error.h"
#include "formats/ggml.h"
#include "formats/gguf.h"
#include "formats/gguf_value.h"

namespace hark {
namespace {

constexpr uint32_t kVersion = 3;

template <class T>
void append(std::string& to, T value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& to, std::string_view text) {
    append<uint64_t>(to, text.size());
    to += text;
}

template <class T>
void append_list(std::string& to, uint32_t type, const std::vector<T>& values) {
    append(to, type);
    append<uint64_t>(to, values.size());
    for (const T& value : values)
        if constexpr (std::is_arithmetic_v<T>)
            append(to, value);
        else
            append_text(to, value);
}

}  // namespace

void GgufOutput::begin_key(std::string_view key, uint32_t type) {
    append_text(keys_, key);
    append(keys_, type);
    ++key_count_;
}

void GgufOutput::count(std::string_view key, int64_t value) {
    require(value >= 0 && value <= UINT32_MAX, key, ": expected a number of 32 bits, found ",
            value);
    begin_key(key, gguf_value::u32);
    append(keys_, static_cast<uint32_t>(value));
}

void GgufOutput::real(std::string_view key, double value) {
    begin_key(key, gguf_value::f32);
    append(keys_, static_cast<float>(value));
}

void GgufOutput::flag(std::string_view key, bool value) {
    begin_key(key, gguf_value::boolean);
    append(keys_, static_cast<uint8_t>(value));
}

void GgufOutput::text(std::string_view key, std::string_view value) {
    begin_key(key, gguf_value::text);
    append_text(keys_, value);
}

void GgufOutput::texts(std::string_view key, const std::vector<std::string>& values) {
    begin_key(key, gguf_value::array);
    append_list(keys_, gguf_value::text, values);
}

void GgufOutput::reals(std::string_view key, const std::vector<float>& values) {
    begin_key(key, gguf_value::array);
    append_list(keys_, gguf_value::f32, values);
}

void GgufOutput::integers(std::string_view key, const std::vector<int32_t>& values) {
    begin_key(key, gguf_value::array);
    append_list(keys_, gguf_value::i32, values);
}

void GgufOutput::tensor(std::string_view name, const Tensor& described) {
    append_text(tensors_, name);
    append(tensors_, static_cast<uint32_t>(described.rank));
    for (int i = described.rank; i-- > 0;) append<uint64_t>(tensors_, described.shape[i]);
    append(tensors_, ggml_type(described.dtype));
    append(tensors_, data_bytes_);
    data_bytes_ += described.bytes() + padding(described.bytes());
    ++tensor_count_;
}

std::string GgufOutput::header() const {
    std::string header(kGgufMagic);
    append(header, kVersion);
    append(header, tensor_count_);
    append(header, key_count_);
    header += keys_ + tensors_;
    header.append(padding(header.size()), '\0');
    return header;
}

}  // namespace hark
