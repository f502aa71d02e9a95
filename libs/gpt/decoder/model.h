// GPT-2 (Radford et al. 2019): a decoder of tokens, layer norms ahead of attention and MLP.
// Reference: openai/gpt-2 src/model.py. T packed rows, C channels, H heads, D = C / H, V tokens.
#pragma once

#include <filesystem>
#include <vector>

#include "formats/tensor_source.h"
#include "gpt/families/config.h"
#include "kernels/runtime/backend.h"
#include "nn/blocks.h"
#include "nn/weights.h"

namespace hark::gpt {

struct Block {
    LayerNorm ln_1;
    SelfAttention attn;  // c_attn, c_proj
    LayerNorm ln_2;
    Mlp mlp;  // c_fc, c_proj

    void operator()(Context& ctx, Tensor x, Tensor keys, Tensor values,
                    const BatchLayout& rows) const;
};

// A cache for `slots` sequences of the model's whole context.
KvCache make_cache(const Config& config, int64_t slots, Dtype dtype,
                   const MemorySource& memory = cpu_memory());

struct Model {
    Config config;
    Precision precision;
    Matrix wte;  // (V, C) token table
    Tensor wpe;  // (n_positions, C)
    std::vector<Block> h;
    LayerNorm ln_f;
    Matrix lm_head;  // (V, C); wte where the two are tied
    Weights weights;

    // tokens, position (T) i32 of the packed rows; `rows` says whose they are, and into which slots
    // of the cache, empty or not, their keys and values go. Returns the logits (n, V) of the n
    // packed rows `wanted` (n) i32, in the arena.
    Tensor operator()(Context& ctx, Tensor tokens, Tensor position, const BatchLayout& rows,
                      Tensor wanted, KvCache& cache) const;
};

// Reads what open_model() finds at `path`, converted by `threads` of the CPU. Throws Error naming
// file and tensor: one that is missing, or whose shape is another than the config says.
Model load_model(const std::filesystem::path& path, Precision precision,
                 const MemorySource& memory = cpu_memory(), int threads = 1);
// The same from any source of tensors.
Model read_model(TensorSource& source, const Config& config, Precision precision,
                 const MemorySource& memory = cpu_memory(), int threads = 1);

}  // namespace hark::gpt
