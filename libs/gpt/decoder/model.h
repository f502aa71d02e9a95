// GPT-2 (Radford et al. 2019): a decoder with layer norm before attention and MLP.
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

// A KV cache for `slots` sequences, each as long as the model's context.
KvCache make_cache(const Config& config, int64_t slots, Dtype dtype,
                   const MemorySource& memory = cpu_memory());

struct Model {
    Config config;
    Precision precision;
    Matrix wte;  // (V, C) token table
    Tensor wpe;  // (n_positions, C)
    std::vector<Block> h;
    LayerNorm ln_f;
    Matrix lm_head;  // (V, C); wte if the head is tied
    Weights weights;

    // Runs the packed rows: tokens, position (T) i32. `rows` maps them to sequences and to the
    // cache slots that their keys and values are appended to. Returns the logits (n, V) of the n
    // rows `wanted` (n) i32, in the arena.
    Tensor operator()(Context& ctx, Tensor tokens, Tensor position, const BatchLayout& rows,
                      Tensor wanted, KvCache& cache) const;
};

// Loads the model that open_model() finds at `path`; `threads` of the CPU convert its weights.
// Throws Error with file and tensor if one is missing or its shape differs from the config's.
Model load_model(const std::filesystem::path& path, Precision precision,
                 const MemorySource& memory = cpu_memory(), int threads = 1);
// The same from any source of tensors.
Model read_model(TensorSource& source, const Config& config, Precision precision,
                 const MemorySource& memory = cpu_memory(), int threads = 1);

}  // namespace hark::gpt
