// Whisper (Radford et al. 2022, figure 1): an encoder of log-mel windows, a decoder of tokens.
// Reference: openai/whisper model.py. C channels, H heads, D = C / H.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernels/runtime/backend.h"
#include "nn/blocks.h"
#include "nn/kv_cache.h"
#include "nn/weights.h"
#include "whisper/model/model_file.h"

namespace hark::whisper {

// Cross-attention scores that a pass returns from a layer: those of these heads, before the
// softmax, for the first frames. An empty list of heads returns nothing.
struct ScoresRequest {
    std::vector<int32_t> heads;
    Tensor scores;  // (heads, T, frames) f32
};

// One request per layer; together they fill `scores` (heads, T, frames) with the scores of the
// config's alignment heads, in the config's order.
std::vector<ScoresRequest> requests_for(const Config& config, const Tensor& scores);

// How the keys and values of cross-attention are stored. The two modes round differently.
enum class CrossKvMode {
    recompute,  // the encoder's output alone, for absorbed_attention(): the least memory, and
                // faster for many windows of one row each
    store,      // each layer's keys and values: 2 * n_text_layer times as much memory
};

// The decoder's source of cross-attention keys and values, one slot per window.
struct CrossKvCache {
    CrossKvCache(const Config& config, const Precision& precision, CrossKvMode mode,
                 int64_t windows, const MemorySource& memory);
    bool recomputes() const { return !key_values; }
    // `mode` if the device has kernels for it, else CrossKvMode::store.
    static CrossKvMode resolved_mode(const Config& config, const Precision& precision,
                                     CrossKvMode mode, Device device);
    // Bytes per window.
    static int64_t window_bytes(const Config& config, const Precision& precision, CrossKvMode mode,
                                Device device);

    std::optional<KvCache> key_values;  // CrossKvMode::store
    Tensor encoder_out;                 // (windows, n_audio_ctx, C), CrossKvMode::recompute

  private:
    Arena memory_;
};

// The encoder's output for each packed row of a pass.
struct CrossAttentionInput {
    const CrossKvCache& cache;
    BatchLayout rows;  // packing of the rows; slots index `cache`, or `gathered_encoder_out`
    // Encoder output of all sequences (B * n_audio_ctx, C), from which keys and values are
    // materialized: for more than kFewQueries rows per window, and for scores. Otherwise empty.
    Tensor gathered_encoder_out;
    BatchLayout windows;  // packing of `gathered_encoder_out`: B sequences of n_audio_ctx rows
};

// Attention from the tokens to an encoded window.
struct CrossAttention {
    Linear query;  // (C, C)
    Linear kv;     // (2C, C); the keys have no bias
    Linear out;    // (C, C)

    // Writes the keys and values of encoder_out (B * n_audio_ctx, C).
    void cache_kv(Context& ctx, Tensor encoder_out, Tensor keys, Tensor values,
                  const BatchLayout& windows) const;
    // x (T, C) += out(attention(query(norm(x)), encoder output)), in this layer.
    void add_to(Context& ctx, Tensor x, const Norm& norm, int64_t n_head,
                const CrossAttentionInput& input, size_t layer, const ScoresRequest* request) const;

  private:
    void attend(Context& ctx, Tensor attn_out, Tensor q, Tensor keys, Tensor values,
                const BatchLayout& rows, float scale, const ScoresRequest* request) const;
};

struct EncoderBlock {
    LayerNorm attn_ln;
    SelfAttention attn;
    LayerNorm mlp_ln;
    Mlp mlp;
    void operator()(Context& ctx, Tensor x, int64_t n_head, const BatchLayout& windows) const;
};

struct Encoder {
    Matrix conv1, conv2;  // (C, 3 * n_mels), (C, 3 * C)
    Tensor conv1_bias, conv2_bias;
    Tensor positions;  // (n_audio_ctx, C)
    std::vector<EncoderBlock> blocks;
    LayerNorm ln_post;
    int64_t n_head = 0;
    Dtype activations = Dtype::f32;

    // mel (B, 3000, n_mels) f32, normalised, time-major -> (B * n_audio_ctx, C), in the arena
    Tensor operator()(Context& ctx, Tensor mel) const;
};

struct DecoderBlock {
    LayerNorm attn_ln;
    SelfAttention attn;
    LayerNorm cross_attn_ln;
    CrossAttention cross_attn;
    LayerNorm mlp_ln;
    Mlp mlp;
};

struct Decoder {
    Matrix token_embedding;  // (n_vocab, C), also the output's weights
    Tensor positions;        // (n_text_ctx, C)
    std::vector<DecoderBlock> blocks;
    LayerNorm ln;
    int64_t n_head = 0;
    Dtype activations = Dtype::f32;

    // Fills the slots of `cache` from encoder_out (B * n_audio_ctx, C): window b in slots[b].
    // `slots` is on the host.
    void cache_cross_kv(Context& ctx, Tensor encoder_out, CrossKvCache& cache,
                        std::span<const int64_t> slots) const;

    // tokens, position (T) i32 of the packed rows; `rows`: self-attention's packing and slots;
    // `cross` has the same packing. Returns in the arena the logits (n, n_vocab) f32 of the packed
    // rows `wanted` (n) i32. Fills in `requests`, one per layer, if given.
    Tensor operator()(Context& ctx, Tensor tokens, Tensor position, const BatchLayout& rows,
                      const CrossAttentionInput& cross, Tensor wanted, KvCache& self,
                      const std::vector<ScoresRequest>* requests = nullptr) const;
};

struct Model {
    Config config;
    Precision precision;
    Encoder encoder;
    Decoder decoder;
    WeightStore weights;
};

// Reads a model's tensors and converts them with `threads` threads of the CPU. Throws Error naming
// file and tensor if one is missing or its shape is not the config's.
Model read_model(ModelFile& file, Precision precision, const MemorySource& memory = cpu_memory(),
                 int threads = 1);
// read_model(open_model(path)).
Model load_model(const std::filesystem::path& path, Precision precision,
                 const MemorySource& memory = cpu_memory(), int threads = 1);

// A model of `config` with random weights (seeded), for benchmarks.
Model random_model(const Config& config, Precision precision, uint64_t seed,
                   const MemorySource& memory = cpu_memory());

}  // namespace hark::whisper
