// Forward and backward of a training step. The arithmetic is the model's (model.h), of which this
// is the form that keeps what backward needs: the residual stream is not written over, GELU's
// input stays, and there is no cache. Activations are of the type of the weights' matrices.
// T packed rows, C channels, H heads, V tokens.
#pragma once

#include <array>
#include <functional>

#include "gpt/parameters.h"
#include "kernels/gradients.h"

namespace hark::gpt {

// The rows of a step, sequences one after another.
struct Batch {
    Tensor tokens, targets;  // (T) i32; a target of -1 counts for nothing
    Tensor position;         // (T) i32
    Sequences sequences;

    std::array<Tensor*, 5> all() {
        return {&tokens, &targets, &position, &sequences.first, &sequences.end};
    }
};

// A batch of the host as the context's kernels take it (kernels/transfer.h).
Batch to_device(Context& ctx, const Batch& host);

// The rows of a batch on the host, packed one after another.
struct PackedRows {
    std::vector<int32_t> tokens, targets, position, first, end;

    // The next row of the sequence that is being packed; its position is its place there.
    void push(int32_t token, int32_t target);
    void end_sequence();  // nothing, where it has no rows
    Batch view();         // valid while the rows are
};

// What is computed again in backward instead of being kept, each with the ones before.
enum class Recompute {
    none,
    gelu,   // GELU's output, 4C a row and layer
    norms,  // the outputs of both norms, 2C
};

// losses (T) f32 of the batch's rows.
void compute_losses(Context& ctx, const Config& config, const ModelTensors& weights,
                    const Batch& batch, Tensor losses);

// The same, and gradients += the gradient of `scale` times the sum of losses. Recompute changes no
// bit of it, but on a GPU in bf16, whose GELU is computed again from its rounded input.
// `done`, where given, is called from the last block down, each time that nothing more will be
// added to a block's matrices: what it launches on ctx's stream finds them whole, and with block 0
// the gradients of all vectors too.
void compute_gradients(Context& ctx, const Config& config, const ModelTensors& weights,
                       const ModelTensors& gradients, const Batch& batch, Recompute recompute,
                       float scale, Tensor losses,
                       const std::function<void(int64_t block)>& done = {});

}  // namespace hark::gpt
