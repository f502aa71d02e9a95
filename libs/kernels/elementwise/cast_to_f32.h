// Calls in bf16 on the CPU: the loops compute in f32.
#pragma once

#include <vector>

#include "core/context.h"
#include "core/tensor.h"

namespace hark {

// Runs a bf16 call as the same call in f32: converts its inputs and holds its outputs.
//
//     if (x.dtype == Dtype::bf16) {
//         CastToF32 wide(ctx, "activate");
//         activate(ctx, wide.out(y), wide.in(x), f);
//         return wide.round();
//     }
//
// The copies are in ctx.arena while this object lives. No tensor gives no tensor; a tensor of
// another type than bf16 is an Error that names the op.
class CastToF32 {
  public:
    CastToF32(Context& ctx, const char* op) : ctx_(ctx), scope_(ctx.arena), op_(op) {}

    Tensor in(const Tensor& t);
    Tensor out(const Tensor& t);
    Tensor inout(const Tensor& t);  // read, and written by round()

    // Converts every output to bf16, rounded to nearest even.
    void round();

  private:
    struct Output {
        Tensor to, from;
    };
    Context& ctx_;
    Arena::Scope scope_;
    const char* op_;
    std::vector<Output> outputs_;
};

}  // namespace hark
