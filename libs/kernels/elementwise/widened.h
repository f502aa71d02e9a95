// Calls in bf16 on the CPU, whose loops compute in f32.
#pragma once

#include <vector>

#include "core/context.h"
#include "core/tensor.h"

namespace hark {

// What a call in bf16 hands to the same call in f32: copies of its inputs, room for its outputs.
//
//     if (x.dtype == Dtype::bf16) {
//         Widened wide(ctx, "activate");
//         activate(ctx, wide.out(y), wide.in(x), f);
//         return wide.round();
//     }
//
// The copies lie in ctx.arena as long as this does. Of none there is none; a tensor that is not
// bf16 is an Error that names the op.
class Widened {
  public:
    Widened(Context& ctx, const char* op) : ctx_(ctx), scope_(ctx.arena), op_(op) {}

    Tensor in(const Tensor& t);
    Tensor out(const Tensor& t);
    Tensor inout(const Tensor& t);  // read, and written by round()

    // Every output becomes what the call has computed, rounded to nearest even.
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
