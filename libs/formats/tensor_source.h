// The source of a model's tensors: one interface, with a reader per format.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "formats/safetensors.h"

namespace hark {

class TensorSource {
  public:
    virtual ~TensorSource() = default;

    // The tensor `name`, valid until release_tensors(). Throws Error naming where it looked: there
    // is none of that name, or its shape is another one.
    virtual Tensor take(const std::string& name, std::initializer_list<int64_t> shape) = 0;
    virtual bool has(const std::string& name) const = 0;
    // What it reads, for messages: a file's name.
    virtual std::string where() const = 0;
    // Threads of the CPU that take() may convert with.
    virtual void use_threads(int) {}
    // Releases the memory of the tensors taken so far.
    virtual void release_tensors() = 0;
    // Whether the tensor, which was taken, is in a file that stays mapped as long as this source.
    virtual bool is_mapped(const Tensor&) const { return false; }
    // Whether linear layers' matrices are (out, in) even where transformers' GPT-2, in its Conv1D,
    // has them (in, out).
    virtual bool stores_out_in() const { return false; }
    // Whether `name` is stored as int8 with a scale a row, which take() gives as f32.
    virtual bool stores_int8(const std::string&) const { return false; }
};

// What read() returns. Names the source in an Error that does not begin with it.
template <class Read>
auto naming(const TensorSource& source, const Read& read) {
    try {
        return read();
    } catch (const OutOfMemory&) {
        throw;
    } catch (const Error& why) {
        const std::string where = source.where();
        if (std::string_view(why.what()).starts_with(where)) throw;
        fail(where, ": ", why.what());
    }
}

constexpr const char* kSafetensorsIndex = "model.safetensors.index.json";

// The files that a model.safetensors.index.json names, all of them in its folder. Throws Error
// naming it if it is no such index.
std::set<std::string> safetensors_shards(const std::filesystem::path& index);

// A tensor as its file has it, of any dtype of safetensors. `data` is not aligned.
struct RawTensor {
    const SafetensorsFile* file = nullptr;
    const TensorEntry* entry = nullptr;
    const std::byte* data = nullptr;

    explicit operator bool() const { return entry != nullptr; }
    int64_t bytes() const { return static_cast<int64_t>(entry->end - entry->begin); }
};

// DIR/model.safetensors, or the shards that DIR/model.safetensors.index.json names. A tensor may
// have its bare name or `prefix` ("model.", "language_model.model.") before it, or that prefix
// without its last word.
class SafetensorsDirectory : public TensorSource {
  public:
    SafetensorsDirectory(const std::filesystem::path& directory, std::string prefix);

    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override;
    bool has(const std::string& name) const override;
    std::string where() const override { return where_; }
    void release_tensors() override;
    bool is_mapped(const Tensor& tensor) const override;
    // The tensor `name`, valid until release_tensors(), or none. find_raw() does not take it.
    RawTensor take_raw(const std::string& name);
    RawTensor find_raw(const std::string& name) const;
    const std::string& prefix() const { return prefix_; }

  private:
    using Found = std::pair<const SafetensorsFile*, const TensorEntry*>;
    Found find(const std::string& name) const;

    std::vector<std::unique_ptr<SafetensorsFile>> files_;
    std::string prefix_, where_;
    std::vector<Found> taken_;
};

// Whatever is asked for, filled with seeded random numbers in the spread of trained weights:
// for benchmarks. Matrices and norms alike are small; 1-D tensors ending in "weight" are near 1.
class RandomTensors : public TensorSource {
  public:
    explicit RandomTensors(uint64_t seed) : state_(seed) {}

    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override;
    bool has(const std::string&) const override { return true; }
    std::string where() const override { return "random weights"; }
    void release_tensors() override { buffers_.clear(); }

  private:
    uint64_t state_;
    std::vector<std::unique_ptr<uint16_t[]>> buffers_;  // f16, as published weights are
};

}  // namespace hark
