// The experts of gpt-oss as its folder stacks them: the opposite of gpt/families/gpt_oss_tensors.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/files/io.h"
#include "core/json/json.h"
#include "gpt/families/model_file.h"

namespace hark::models {

inline constexpr const char* kGptOss = "gpt_oss";  // the family

// A tensor of a folder, without the prefix of its name. write() writes its values.
struct FolderTensor {
    std::string name;
    Dtype dtype = Dtype::f32;
    std::vector<int64_t> shape;
    std::function<void(ByteWriter&)> write;
};

// True for gpt-oss if all matrices of its experts are blocks of mxfp4. They stay so in a folder.
bool has_mxfp4_experts(gpt::ModelFile& model);

// What config.json says of these blocks.
nlohmann::ordered_json gpt_oss_quantization();

// The tensors of all experts: blocks and scales of mxfp4, bit for bit, if the model has them, else
// matrices in `dtype`; biases in `dtype`. `model` must outlive the result.
std::vector<FolderTensor> gpt_oss_experts(gpt::ModelFile& model, Dtype dtype);

}  // namespace hark::models
