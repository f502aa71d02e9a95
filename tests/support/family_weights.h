// The weights of tests/golden/families.py, by formula.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/tensor_source.h"
#include "support/formula_weights.h"

namespace hark::test {

// Whatever is asked for. Gemma's norms are near 0, those of others near 1. gpt-oss's experts are
// numbers, or mxfp4 if `has_blocks`.
class FamilyWeights : public TensorSource {
  public:
    explicit FamilyWeights(bool is_gemma, bool has_blocks = false)
        : is_gemma_(is_gemma), has_blocks_(has_blocks) {}

    std::vector<float> values(const std::string& name, int64_t count, bool is_vector) const {
        const bool norm = name.find("norm") != name.npos;
        Formula formula(name, {});
        formula.offset = norm && !is_gemma_ ? 1 : 0;
        formula.scale = norm ? 0.171875 : is_vector ? 0.09375 : 0.140625;
        return formula.values(static_cast<size_t>(count));
    }
    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override {
        if (name.ends_with("_blocks") || name.ends_with("_scales"))
            return bytes(name, Tensor(nullptr, Dtype::u8, shape));
        Tensor tensor(nullptr, Dtype::f32, shape);
        taken_.push_back(values(name, tensor.size(), tensor.rank == 1));
        tensor.data = taken_.back().data();
        return tensor;
    }
    bool has(const std::string& name) const override {
        return has_blocks_ || !name.ends_with("_blocks");
    }
    std::string where() const override { return "formula weights"; }
    void release_tensors() override {
        taken_.clear();
        bytes_.clear();
    }

  private:
    // gpt-oss's mxfp4: bytes, the exponents around those of small numbers.
    Tensor bytes(const std::string& name, Tensor tensor) {
        const Formula formula(name, {});
        const bool scales = name.ends_with("_scales");
        auto& bytes = bytes_.emplace_back(static_cast<size_t>(tensor.size()));
        for (size_t i = 0; i < bytes.size(); ++i) {
            const auto byte = static_cast<uint8_t>(formula.bits(i) >> 56);
            bytes[i] = scales ? static_cast<uint8_t>(byte % 4 + 122) : byte;
        }
        tensor.data = bytes.data();
        return tensor;
    }

    bool is_gemma_, has_blocks_;
    std::vector<std::vector<float>> taken_;
    std::vector<std::vector<uint8_t>> bytes_;
};

}  // namespace hark::test
