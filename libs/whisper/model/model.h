// Whisper (Radford et al. 2022, figure 1): an encoder of log-mel windows, a decoder of tokens.
// Reference: openai/whisper model.py. C channels, H heads, D = C / H.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernels/runtime/backend.h"
#include "nn/layers.h"
#include "nn/weights.h"
#include "whisper/model/model_file.h"

namespace hark::whisper {

// What a pass hands out of a layer's cross-attention: the scores of these heads, before the
// softmax, for the first frames. No heads: nothing.
struct ScoresRequest {
    std::vector<int32_t> heads;
    Tensor scores;  // (heads, T, frames) f32
};

// The requests, one a layer, that fill in `scores` (heads, T, frames) of the config's alignment
// heads in their order.
std::vector<ScoresRequest> requests_for(const Config& config, const Tensor& scores);

// What a decoder may keep of the windows that it listens to. The bits of the logits differ.
enum class Keep {
    encoded,  // what the encoder made of them, where folded_attention() takes it: the least memory,
              // and the faster for many windows of one row each
    key_values,  // each layer's keys and values: 2 * n_text_layer times as much
};

// What is kept of windows, a slot each.
struct Heard {
    Heard(const Config& config, const Precision& precision, Keep keep, int64_t windows,
          const MemorySource& memory);
    bool folded() const { return !key_values; }
    // What `keep` comes to on a device.
    static Keep kept(const Config& config, const Precision& precision, Keep keep, Device device);
    // Bytes that a window takes.
    static int64_t window_bytes(const Config& config, const Precision& precision, Keep keep,
                                Device device);

    std::optional<KeyValues> key_values;
    Tensor encoded;  // (windows, n_audio_ctx, C), or none

  private:
    Arena memory_;
};

// What the packed rows of a pass listen to.
struct Listening {
    const Heard& heard;
    Ragged rows;  // their packing; the slots are those of `heard`, or of `gathered`
    // The windows of all sequences one after another (B * n_audio_ctx, C), where what is folded has
    // to be unfolded: for many queries a window, and for their scores. Or none.
    Tensor gathered;
    Ragged windows;  // of `gathered`: B sequences of n_audio_ctx rows
};

// Attention from the tokens to an encoded window.
struct CrossAttention {
    Linear query;  // (C, C)
    Linear kv;     // (2C, C); the keys have no bias
    Linear out;    // (C, C)

    // Keys and values of encoded windows (B * n_audio_ctx, C).
    void remember(Context& ctx, Tensor encoded, Tensor keys, Tensor values,
                  const Ragged& windows) const;
    // x (T, C) += out(attention(query(input))) over what is heard, in the layer of this number.
    void add_to(Context& ctx, Tensor x, const Norm& norm, int64_t n_head,
                const Listening& listening, size_t layer, const ScoresRequest* request) const;

  private:
    void attend(Context& ctx, Tensor mixed, Tensor q, Tensor keys, Tensor values,
                const Ragged& rows, float scale, const ScoresRequest* request) const;
};

struct EncoderBlock {
    LayerNorm attn_ln;
    SelfAttention attn;
    LayerNorm mlp_ln;
    Mlp mlp;
    void operator()(Context& ctx, Tensor x, int64_t n_head, const Ragged& windows) const;
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

    // Puts what is kept of the encoded windows (B * n_audio_ctx, C) into slots[b]; `slots` is on
    // the host.
    void remember(Context& ctx, Tensor encoded, Heard& heard, std::span<const int64_t> slots) const;

    // tokens, position (T) i32 of the packed rows; `rows` says where their own keys go and how
    // long they are, `listening` what they hear, with the same packing. Returns the logits
    // (n, n_vocab) f32 of the n packed rows `wanted` (n) i32, in the arena, and fills in the
    // requests, one a layer, where there are any.
    Tensor operator()(Context& ctx, Tensor tokens, Tensor position, const Ragged& rows,
                      const Listening& listening, Tensor wanted, KeyValues& self,
                      const std::vector<ScoresRequest>* requests = nullptr) const;
};

struct Model {
    Config config;
    Precision precision;
    Encoder encoder;
    Decoder decoder;
    Weights weights;
};

// Reads a model's tensors, converted by `threads` of the CPU. Throws Error naming file and tensor:
// one that is missing, or whose shape is another than the config says.
Model read_model(ModelFile& file, Precision precision, const MemorySource& memory = cpu_memory(),
                 int threads = 1);
// The same of what open_model() finds at `path`.
Model load_model(const std::filesystem::path& path, Precision precision,
                 const MemorySource& memory = cpu_memory(), int threads = 1);

// A model of `config` with random weights (seeded), for benchmarks.
Model random_model(const Config& config, Precision precision, uint64_t seed,
                   const MemorySource& memory = cpu_memory());

}  // namespace hark::whisper
