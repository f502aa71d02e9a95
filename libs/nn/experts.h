// A mixture of experts, which many decoders have instead of an MLP.
#pragma once

#include "kernels/comm/communicator.h"
#include "nn/blocks.h"

namespace hark {

// T rows, C channels, E experts of I hidden channels, k of them per row. y = norm(x);
//
//     chosen, weights = the k experts with the largest router(y)           (T, k)
//     x += sum over the chosen of weight * down(f(gate(y)) * up(y))         (T, C)
//     x += shared_down(f(shared_gate(y)) * shared_up(y)), if there are shared experts
//
// Source: Jiang et al. 2024 (Mixtral), section 2.1; shared experts: DeepSeek-V2 2024, section 2.2.
struct Experts {
    Norm norm;
    Linear router;        // (E, C)
    int64_t per_row = 0;  // k
    Routing routing;
    ExpertMatrices gate, up;  // (I, C) each
    ExpertMatrices down;      // (C, I) each
    Gating gating;
    LinearGroup shared_in;      // gate and up of the experts that compute every row, as one MLP
    Linear shared_down;         // (C, S)
    int64_t shared_hidden = 0;  // S; 0: there are none
    Communicator* ranks = &no_other_ranks();  // each has a share of I and S

    void add_to(Context& ctx, Tensor x) const;

  private:
    // x (T, C) += the experts' sums of y (T, C), the norm's output.
    void add_sums(Context& ctx, Tensor x, Tensor y) const;
};

}  // namespace hark
