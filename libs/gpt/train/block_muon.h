// Muon over a model's blocks.
#pragma once

#include "gpt/train/parameters.h"
#include "kernels/gradients.h"

namespace hark::gpt {

// One step (kernels/gradients.h) of the matrices of p's blocks, whole ones, with gradients g times
// clip[1] and the momentum m.
void muon_of_blocks(Context& ctx, const ModelTensors& p, const ModelTensors& m,
                    const ModelTensors& g, const Tensor& clip, const Muon& with);

}  // namespace hark::gpt
