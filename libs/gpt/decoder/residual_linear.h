// A linear whose output is added to the residual stream.
#pragma once

#include "kernels/comm/communicator.h"
#include "nn/blocks.h"

namespace hark::gpt {

// x += scale * norm(y W^T + bias). Of several ranks each has some columns of y and of W, and their
// products are added up.
struct ResidualLinear {
    Linear linear;
    Norm post_norm;  // none in most families
    float scale = 1;
    Communicator* ranks = &no_other_ranks();

    void add_to(Context& ctx, Tensor x, Tensor y) const;
};

}  // namespace hark::gpt
