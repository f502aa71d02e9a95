// Muon over a model's blocks.
#pragma once

#include "gpt/train/parameters.h"
#include "kernels/gradients.h"

namespace hark::gpt {

// One Muon step (kernels/gradients.h) of the matrices of p's blocks, not sliced, with gradients g
// times clip[1] and momentum m.
void update_blocks_with_muon(Context& ctx, const ModelTensors& p, const ModelTensors& m,
                             const ModelTensors& g, const Tensor& clip, const Muon& with);

}  // namespace hark::gpt
