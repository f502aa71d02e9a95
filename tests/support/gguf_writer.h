// Writes GGUF files, by the format's description alone and with no checks, so that broken ones can
// be had too. Source: ggml's docs/gguf.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hark::test {

class GgufWriter {
  public:
    // What the header says, unless a test says otherwise.
    uint32_t version = 3;
    uint64_t more_keys = 0, more_tensors = 0;  // than there are
    size_t alignment = 32;                     // of the data; the key is general.alignment

    template <class T>
    static std::string number(T value) {
        return {reinterpret_cast<const char*>(&value), sizeof value};
    }
    static std::string string(std::string_view text) {
        return number<uint64_t>(text.size()) + std::string(text);
    }

    // A key of any type, its value as it is in the file.
    void key(std::string_view name, uint32_t type, const std::string& value) {
        keys_ += string(name) + number(type) + value;
        ++key_count_;
    }
    void u32(std::string_view name, uint32_t value) { key(name, 4, number(value)); }
    void f32(std::string_view name, float value) { key(name, 6, number(value)); }
    void text(std::string_view name, std::string_view value) { key(name, 8, string(value)); }
    void texts(std::string_view name, const std::vector<std::string>& values) {
        std::string all = number<uint32_t>(8) + number<uint64_t>(values.size());
        for (const std::string& value : values) all += string(value);
        key(name, 9, all);
    }
    void i32s(std::string_view name, const std::vector<int32_t>& values) {
        std::string all = number<uint32_t>(5) + number<uint64_t>(values.size());
        for (const int32_t value : values) all += number(value);
        key(name, 9, all);
    }
    void booleans(std::string_view name, const std::vector<bool>& values) {
        std::string all = number<uint32_t>(7) + number<uint64_t>(values.size());
        for (const bool value : values) all += value ? '\x01' : '\x00';
        key(name, 9, all);
    }
    // Says that this is part `no`, from 0 on, of a model of `count` files with `tensors` in all.
    void split(uint16_t no, uint16_t count, int32_t tensors) {
        key("split.no", 2, number(no));
        key("split.count", 2, number(count));
        key("split.tensors.count", 5, number(tensors));
    }

    // dims: the file's order, a row's length first; type: ggml's number. It follows those before.
    void tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                const std::string& data) {
        describe(name, dims, type, data_.size());
        data_ += data;
        data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    }
    // The description alone.
    void describe(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                  uint64_t offset) {
        tensors_ += string(name) + number(static_cast<uint32_t>(dims.size()));
        for (const uint64_t dim : dims) tensors_ += number(dim);
        tensors_ += number(type) + number(offset);
        ++tensor_count_;
    }

    std::string bytes() const {
        std::string all = "GGUF" + number(version) + number(tensor_count_ + more_tensors) +
                          number(key_count_ + more_keys) + keys_ + tensors_;
        all.resize((all.size() + alignment - 1) / alignment * alignment);
        return all + data_;
    }

  private:
    std::string keys_, tensors_, data_;
    uint64_t key_count_ = 0, tensor_count_ = 0;
};

}  // namespace hark::test
