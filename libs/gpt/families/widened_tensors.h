// A folder's packed matrices as plain ones, or as blocks that hold the same numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/packed/packed_matrix.h"

namespace hark::gpt {

class WidenedTensors : public TensorSource {
  public:
    // `stored` and `format` must outlive it. A matrix of numbers of four or eight bits with their
    // sign becomes blocks of q4_0 or q8_0 if these hold its scales. Others whose scales are f32 are
    // rounded to `model_type`, the rest to the type of their scales.
    WidenedTensors(SafetensorsDirectory& stored, const PackedFormat& format, Dtype model_type)
        : stored_(stored), format_(format), model_type_(model_type) {}

    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override;
    bool has(const std::string& name) const override {
        return stored_.has(name) || is_packed(name);
    }
    std::string where() const override { return stored_.where(); }
    void use_threads(int count) override { threads_ = count; }
    void release_tensors() override {
        widened_.clear();
        stored_.release_tensors();
    }
    bool is_mapped(const Tensor& tensor) const override { return stored_.is_mapped(tensor); }

    // Whether the tensor is a matrix in the format.
    bool is_packed(const std::string& name) const;
    // The type of such a matrix in memory. Throws Error as take() does.
    Dtype dtype_of(const std::string& name, int64_t rows, int64_t columns) const {
        return dtype_of(open(name, rows, columns), rows, columns);
    }

  private:
    PackedMatrix open(const std::string& name, int64_t rows, int64_t columns) const;
    Dtype dtype_of(const PackedMatrix& matrix, int64_t rows, int64_t columns) const;

    SafetensorsDirectory& stored_;
    const PackedFormat& format_;
    Dtype model_type_;
    int threads_ = 1;
    std::vector<std::unique_ptr<std::byte[]>> widened_;  // until release_tensors()
};

}  // namespace hark::gpt
