// The tensors of gpt-oss in Hugging Face's form, which stacks a layer's experts:
//
//     mlp.experts.gate_up_proj          (E, C, 2 I)   gate and up are columns in turn
//     mlp.experts.gate_up_proj_bias     (E, 2 I)
//     mlp.experts.down_proj             (E, I, C), down_proj_bias (E, C)
//
// or, in mxfp4, gate_up_proj_blocks (E, 2 I, C / 32, 16) u8 with gate_up_proj_scales
// (E, 2 I, C / 32) u8; down_proj is stored the same way. Source: transformers integrations/mxfp4.py.
#pragma once

#include <memory>

#include "formats/tensor_source.h"
#include "gpt/families/config.h"

namespace hark::gpt {

// Gives each expert's gate_proj, up_proj and down_proj as tensors of their own, (out, in): numbers
// in their stored type, or blocks of mxfp4. `stored` must outlive the result.
std::unique_ptr<TensorSource> unpack_gpt_oss(TensorSource& stored, const DecoderConfig& config);

}  // namespace hark::gpt
