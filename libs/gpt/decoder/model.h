// A decoder-only language model. Written once for all families: what differs is data
// (families/config.h). T packed rows, C channels, H heads and Hkv key/value heads of D channels, V
// tokens.
//
//     x = embedding(tokens)                                          (T, C)
//     for each layer:  x += attention(norm(x));  x += mlp(norm(x))   (T, C)
//     logits = lm_head(norm(x))                                      (n, V)
//
// References: openai/gpt-2 src/model.py; transformers models/*/modeling_*.py.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "gpt/decoder/latent_attention.h"
#include "gpt/decoder/residual_linear.h"
#include "gpt/families/config.h"
#include "kernels/runtime/backend.h"
#include "nn/blocks.h"
#include "nn/experts.h"
#include "nn/kv_cache.h"
#include "nn/weights.h"

namespace hark {
class TensorSource;
}

namespace hark::gpt {

class ModelFile;

struct DecoderAttention {
    Norm norm;        // before; none in OLMo 2
    LinearGroup qkv;  // q (H D), k and v (Hkv D)
    QkNorm qk_norm = QkNorm::none;
    Norm q_norm, k_norm;
    ResidualLinear out;  // (C, H D)
    AttentionOptions options;
    int64_t heads = 0, head_dim = 0;
    int rope = -1;  // in Model::ropes; -1: none

    // x (T, C) += out(attention(q, k, v)); k and v are written to the caches.
    void add_to(Context& ctx, Tensor x, Tensor position, const Rope& rope, Tensor keys,
                Tensor values, const BatchLayout& rows) const;
};

struct DecoderMlp {
    Norm norm;
    LinearGroup in;  // gate and up, or up alone
    bool gated = false;
    Activation activation = Activation::none;
    ResidualLinear down;

    // x (T, C) += down(f(gate(x)) * up(x)), or down(f(up(x)))
    void add_to(Context& ctx, Tensor x) const;
};

struct DecoderLayer {
    std::variant<DecoderAttention, LatentAttention> attention;
    std::variant<DecoderMlp, Experts> mlp;
};

// Rotary positions in the device's memory.
struct ModelRope {
    Rope rope;
    Rope long_rope;  // of sequences longer than original_length; or none
    int64_t original_length = 0;

    const Rope& of_length(int64_t length) const {
        return long_rope.frequencies && length > original_length ? long_rope : rope;
    }
};

// The cache of one sequence with up to `capacity` tokens, in one block. Throws Error where heads
// are not whole blocks of a quantised type.
KvCacheShape cache_shape(const DecoderConfig& config, Dtype dtype, int64_t capacity);

// Several processes (ranks) may compute a model together: then config, weights and caches are a
// rank's slice (families/tensor_slices.h), and all ranks call the model with the same rows. Its
// states and logits are whole, the same bits on each.
struct Model {
    DecoderConfig config;
    Precision precision;
    Matrix token_table;     // (V, C)
    Tensor position_table;  // (n_positions, C), or none
    std::vector<ModelRope> ropes;
    std::vector<DecoderLayer> layers;
    Norm final_norm;
    Matrix lm_head;  // (V, C), or a rank's rows; of token_table if the head is tied
    WeightStore weights;
    Communicator* ranks = &no_other_ranks();

    // Runs the packed rows: tokens, position (T) i32. `rows`, one layout per group of the cache,
    // maps them to sequences and to the blocks that their keys and values are appended to. Returns
    // the logits (n, V) of the n rows `wanted` (n) i32, in the arena. longrope: all sequences of a
    // call have the table of a text of `text_length` tokens, or the longest layout's if it is 0.
    Tensor operator()(Context& ctx, Tensor tokens, Tensor position,
                      std::span<const BatchLayout> rows, Tensor wanted, const KvCache& cache,
                      int64_t text_length = 0) const;
    // The same up to the final norm: its outputs (n, C), in the arena.
    Tensor states(Context& ctx, Tensor tokens, Tensor position, std::span<const BatchLayout> rows,
                  Tensor wanted, const KvCache& cache, int64_t text_length = 0) const;
    // Writes the logits (n, V) f32 of these outputs (n, C).
    void head(Context& ctx, Tensor logits, Tensor states) const;

  private:
    void gather_head(Context& ctx, Tensor logits, Tensor states) const;
};

// Differs between models, and between types of one model's weights: 16 hexadecimal digits. It takes
// the settings that keys and values depend on, and a sample of each weight's values.
std::string fingerprint_of(Context& ctx, const Model& model);

// Loads the model that open_model() finds at `path`; `threads` of the CPU convert its weights.
// Throws Error with file and tensor if one is missing or its shape differs from the config's.
Model load_model(const std::filesystem::path& path, Precision precision,
                 const MemorySource& memory = cpu_memory(), int threads = 1);
// The same from an open file, which the model keeps: on the CPU, matrices that stay in their stored
// type are used in place. Of several `ranks` each loads its slice; they must outlive the model.
// Throws Error that says what they do not divide.
Model read_model(const std::shared_ptr<ModelFile>& file, Precision precision,
                 const MemorySource& memory = cpu_memory(), int threads = 1,
                 Communicator& ranks = no_other_ranks());
// The same from any source of tensors; its values are copied.
Model read_model(TensorSource& source, const DecoderConfig& config, Precision precision,
                 const MemorySource& memory = cpu_memory(), int threads = 1,
                 Communicator& ranks = no_other_ranks());

}  // namespace hark::gpt
