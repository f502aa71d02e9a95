// Forward and backward of a training step, written once for all families that are trained: the
// arithmetic of decoder/model.h without a cache, which keeps what backward needs, in the type of
// the weights' matrices. T packed rows, C channels, H heads and Hkv key/value heads of D channels,
// V tokens. Tensor-parallel as Shoeybi et al. 2019 (Megatron-LM), section 3: docs/models/gpt2.md.
#pragma once

#include <array>
#include <functional>

#include "gpt/engine/packed_rows.h"
#include "gpt/train/parameters.h"
#include "kernels/comm/communicator.h"
#include "kernels/gradients.h"

namespace hark::gpt {

// The rows of a batch, one sequence after another.
struct Batch {
    Tensor tokens, targets;  // (T) i32; a target of -1 has no loss
    Tensor position;         // (T) i32
    Sequences sequences;

    std::array<Tensor*, 5> all() {
        return {&tokens, &targets, &position, &sequences.first, &sequences.end};
    }
};

// Copies a batch of the host to the context's device (kernels/runtime/transfer.h).
Batch to_device(Context& ctx, const Batch& host);

// A view of rows on the host, valid while they are.
Batch view_of(PackedRows& rows);

// What backward computes again instead of keeping it; each level includes those before.
enum class Recompute {
    none,
    gelu,    // the activation's output, `inner` channels per row and layer
    norms,   // the outputs of both norms, 2C
    blocks,  // everything but a block's input
};

// Rows whose logits, of `columns` tokens, are in memory at the same time.
int64_t logits_rows(const Context& ctx, int64_t columns, int64_t rows);

// Called from the last block down, when the gradients of a block's matrices are complete; with
// block 0 those of all vectors are too. What it launches on ctx's stream finds them complete.
using BlockDone = std::function<void(int64_t block)>;

// A model's rotary positions in `memory`, on the context's device, for ModelTensors::ropes.
std::vector<Rope> upload_ropes(Context& ctx, Arena& memory, const DecoderConfig& config);

// losses (T) f32 of the batch's rows. All of `tensor`'s ranks must call it with the same batch and
// the views of their own weights; `config` is the full model's.
void compute_losses(Context& ctx, Communicator& tensor, const DecoderConfig& config,
                    const ModelTensors& weights, const Batch& batch, Tensor losses);
// The same of rows on the host, and the losses there.
std::vector<float> row_losses(Context& ctx, Communicator& tensor, const DecoderConfig& config,
                              const ModelTensors& weights, PackedRows& rows);

// The same as compute_losses(), and gradients += the gradient of `scale` times the sum of losses.
// Recompute changes no bit except for gelu and norms in bf16 on a GPU, whose activation is
// recomputed from its rounded input. The tables' gradients are of a share of the rows: the caller
// sums them over `tensor`.
void compute_gradients(Context& ctx, Communicator& tensor, const DecoderConfig& config,
                       const ModelTensors& weights, const ModelTensors& gradients,
                       const Batch& batch, Recompute recompute, float scale, Tensor losses,
                       const BlockDone& done = {});

}  // namespace hark::gpt
