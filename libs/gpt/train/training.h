// Forward and backward of a training step. The arithmetic is the model's (model.h), of which this
// is the form that keeps what backward needs: the residual stream is not written over, GELU's
// input stays, and there is no cache. Activations are of the type of the weights' matrices.
// T packed rows, C channels, H heads, V tokens.
//
// Where several ranks compute the same rows together, each has its heads and its share of the
// MLP's channels (parameters.h), and what they make of them is added up: twice a block on the way
// forward and twice on the way back. The residual stream and the norms are whole on each of them,
// the same to the bit. The vocabulary's product, whose table all have, is shared by rows. Source:
// Shoeybi et al. 2019 (Megatron-LM), section 3, but for the vocabulary, which they cut.
#pragma once

#include <array>
#include <functional>

#include "gpt/train/parameters.h"
#include "kernels/comm/communicator.h"
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

// Rows whose logits, of `columns` tokens, are in memory at the same time.
int64_t logits_rows(const Context& ctx, int64_t columns, int64_t rows);

// losses (T) f32 of the batch's rows. For all of `tensor`'s ranks to call with the same batch, and
// with the views of their own weights; `config` is the whole model's.
void compute_losses(Context& ctx, Communicator& tensor, const Config& config,
                    const ModelTensors& weights, const Batch& batch, Tensor losses);

// The same, and gradients += the gradient of `scale` times the sum of losses. Recompute changes no
// bit of it, but on a GPU in bf16, whose GELU is computed again from its rounded input.
// `done`, where given, is called from the last block down, each time that nothing more will be
// added to a block's matrices: what it launches on ctx's stream finds them whole, and with block 0
// the gradients of all vectors too. The tables' (ParameterLayout::tables()) are those of a share of
// the rows: their sum over `tensor` is left to the caller.
void compute_gradients(Context& ctx, Communicator& tensor, const Config& config,
                       const ModelTensors& weights, const ModelTensors& gradients,
                       const Batch& batch, Recompute recompute, float scale, Tensor losses,
                       const std::function<void(int64_t block)>& done = {});

}  // namespace hark::gpt
