// The tensors of a model, and their values.
#pragma once

#include <string>
#include <vector>

#include "hub/model_handle.h"

namespace hark::models {

struct ModelTensor {
    std::string name;            // as Hugging Face has it, without "model." or "transformer."
    std::vector<int64_t> shape;  // as in that file
    bool matrix = false;         // rounded by --dtype: not a vector, not a table of positions
    bool in_out = false;         // GPT-2's Conv1D: a source may store it (out, in)
    const char* kind = "";       // of a language model: "attention_q", "norm"
    bool norm = false;           // TensorSpec::is_norm()
    int64_t size() const;        // values
};

// Returns all tensors that the model's config needs, in the order of its layers.
std::vector<ModelTensor> tensor_list(const ModelHandle& model);
std::vector<ModelTensor> tensor_list(const whisper::Config& config);
std::vector<ModelTensor> tensor_list(const gpt::DecoderConfig& config);

// Returns the tensor as the source stores it. Throws Error as TensorSource::take does.
Tensor take(TensorSource& source, const ModelTensor& tensor);

// A matrix of (rows, columns) as one of (columns, rows).
std::vector<float> turned(const std::vector<float>& values, int64_t rows, int64_t columns);

// Returns the values in the order of ModelTensor::shape, and releases all tensors taken from the
// source. Throws Error too if a value is infinite or not a number.
std::vector<float> values_of(TensorSource& source, const ModelTensor& tensor);

}  // namespace hark::models
