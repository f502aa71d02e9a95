// The weights of tests/golden/families.py, by formula.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/tensor_source.h"
#include "support/formula_weights.h"

namespace hark::test {

// Whatever is asked for. Gemma's norms are near 0, those of others near 1.
class FamilyWeights : public TensorSource {
  public:
    explicit FamilyWeights(bool is_gemma) : is_gemma_(is_gemma) {}

    std::vector<float> values(const std::string& name, int64_t count, bool is_vector) const {
        const bool norm = name.find("norm") != name.npos;
        Formula formula(name, {});
        formula.offset = norm && !is_gemma_ ? 1 : 0;
        formula.scale = norm ? 0.171875 : is_vector ? 0.09375 : 0.140625;
        std::vector<float> values(static_cast<size_t>(count));
        for (size_t i = 0; i < values.size(); ++i) values[i] = formula(i);
        return values;
    }
    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override {
        Tensor tensor(nullptr, Dtype::f32, shape);
        taken_.push_back(values(name, tensor.size(), tensor.rank == 1));
        tensor.data = taken_.back().data();
        return tensor;
    }
    bool has(const std::string&) const override { return true; }
    std::string where() const override { return "formula weights"; }
    void forget_taken() override { taken_.clear(); }

  private:
    bool is_gemma_;
    std::vector<std::vector<float>> taken_;
};

}  // namespace hark::test
