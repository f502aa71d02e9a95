// GGUF, the format of llama.cpp's models: key-values, then tensors. Little-endian files of version
// 2 or 3, which are alike. Source: ggml's docs/gguf.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/byte_cursor.h"
#include "core/files/mapped_file.h"
#include "core/tensor.h"

namespace hark {

inline constexpr std::string_view kGgufMagic = "GGUF";  // a file's first bytes

// A mapped file, or the parts of one: NAME-00001-of-00003.gguf has the keys, and it and those next
// to it have the tensors. Everything thrown is an Error that begins with a file's name.
class GgufFile {
  public:
    // Checks counts, lengths and places against the file's size, that no name is there twice and no
    // tensors overlap, before anything is taken by them. Throws also for types of tensors that hark
    // does not compute with (ggml_dtype). `path` is the first part if there are several; throws if
    // a part is missing or is not what the first one says.
    // Source: llama.cpp tools/gguf-split/gguf-split.cpp, and llama_split_path.
    explicit GgufFile(const std::filesystem::path& path);

    const std::string& name() const { return file_.name(); }

    // Values of keys; they throw if there is none, or of another kind, or out of range. Views
    // live as long as this does.
    bool has(const std::string& key) const { return values_.contains(key); }
    bool has_array(const std::string& key) const { return has(key) && values_.at(key).array; }
    std::string_view text(const std::string& key) const;
    int64_t integer(const std::string& key, int64_t min, int64_t max) const;  // of any width
    double number(const std::string& key) const;                              // f32 or f64
    bool boolean(const std::string& key) const;
    std::vector<std::string_view> texts(const std::string& key) const;
    std::vector<bool> booleans(const std::string& key) const;
    std::vector<int64_t> integers(const std::string& key) const;
    std::vector<double> numbers(const std::string& key) const;  // f32 or f64

    // By name; the last dimension is that of rows, as everywhere here, and the file's first.
    const std::map<std::string, Tensor>& tensors() const { return tensors_; }
    // Lets a tensor's pages go once its values have been taken.
    void forget(const Tensor& tensor) const;
    // Whether the address is in one of the parts.
    bool holds(const void* at) const;

  private:
    struct Alone {};  // whatever its keys say of parts
    GgufFile(const std::filesystem::path& path, Alone);

    struct Value {
        uint32_t type = 0;  // of an array's elements
        bool array = false;
        uint64_t count = 1;
        size_t offset = 0;  // in the file
    };

    static Value read_value(ByteCursor& header);
    void read_tensors(ByteCursor& header, uint64_t count);
    void open_parts(const std::filesystem::path& path);
    void check_part(int64_t number, int64_t count, int64_t tensors) const;
    // The part whose file holds the tensor's values.
    const GgufFile& part_of(const Tensor& tensor) const;
    size_t alignment() const;
    const Value& value(const std::string& key, bool array, bool (*fits)(uint32_t),
                       const char* expected) const;
    int64_t integer_at(size_t offset, uint32_t type) const;
    template <class T>
    T at(size_t offset) const;

    MappedFile file_;
    std::map<std::string, Value> values_;
    std::map<std::string, Tensor> tensors_;         // of all parts
    std::vector<std::unique_ptr<GgufFile>> parts_;  // from the second on
};

}  // namespace hark
