// Muon over a model's blocks.
#pragma once

#include "gpt/train/parameters.h"
#include "kernels/gradients.h"

namespace hark::gpt {

// One Muon step (kernels/gradients.h) of the matrices of p's blocks, with gradients g times clip[1]
// and momentum m; the three have `layout`, a full model's.
void update_blocks_with_muon(Context& ctx, const ParameterLayout& layout, const Tensor& p,
                             const Tensor& m, const Tensor& g, const Tensor& clip,
                             const Muon& with);

}  // namespace hark::gpt
