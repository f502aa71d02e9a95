// What tensors a model has, and their values.
#pragma once

#include <string>
#include <vector>

#include "models/any_model.h"

namespace hark::models {

struct ModelTensor {
    std::string name;            // as Hugging Face has it, without "model." or "transformer."
    std::vector<int64_t> shape;  // in the same order
    bool matrix = false;         // what --dtype rounds: all but vectors and tables of positions
    bool in_out = false;         // GPT-2's Conv1D: a source may store it (out, in)
    int64_t size() const;        // values
};

// All tensors that the model's config asks for, in the order of its layers.
std::vector<ModelTensor> tensor_list(const AnyModel& model);
std::vector<ModelTensor> tensor_list(const whisper::Config& config);
std::vector<ModelTensor> tensor_list(const gpt::Config& config);

// The tensor as the source stores it. Throws Error as TensorSource::take does.
Tensor take(TensorSource& source, const ModelTensor& tensor);

// Its values in the order of ModelTensor::shape. Throws Error too if one is infinite or
// not a number. Ends what the source has returned so far.
std::vector<float> values_of(TensorSource& source, const ModelTensor& tensor);

}  // namespace hark::models
