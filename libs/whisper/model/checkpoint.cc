// Reads Whisper's tensors by Hugging Face's names.
#include "core/error.h"
#include "core/profile/profile.h"
#include "core/profile/run_counts.h"
#include "formats/tensor_source.h"
#include "whisper/model/model.h"

namespace hark::whisper {
namespace {

// Reads layers by the names of their tensors.
class LayerReader {
  public:
    LayerReader(TensorSource& file, WeightStore& weights, WeightPrecision precision)
        : file_(file), weights_(weights), precision_(precision) {}

    LayerNorm norm(const std::string& name, int64_t c) {
        return {weights_.vector({file_.take(name + ".weight", {c})}),
                weights_.vector({file_.take(name + ".bias", {c})})};
    }
    Linear linear(const std::string& name, int64_t n, int64_t k) {
        return {weights_.matrix({file_.take(name + ".weight", {n, k})}),
                weights_.vector({file_.take(name + ".bias", {n})})};
    }
    SelfAttention self_attention(const std::string& name, int64_t c) {
        Linear qkv{weights_.matrix({file_.take(name + ".q_proj.weight", {c, c}),
                                    file_.take(name + ".k_proj.weight", {c, c}),
                                    file_.take(name + ".v_proj.weight", {c, c})}),
                   weights_.vector({file_.take(name + ".q_proj.bias", {c}), zeros_of(c),
                                    file_.take(name + ".v_proj.bias", {c})})};
        return {qkv, linear(name + ".out_proj", c, c)};
    }
    CrossAttention cross_attention(const std::string& name, int64_t c) {
        Linear kv{weights_.matrix({file_.take(name + ".k_proj.weight", {c, c}),
                                   file_.take(name + ".v_proj.weight", {c, c})},
                                  // absorbed_attention() on a GPU does not take quantised blocks.
                                  unquantized()),
                  weights_.vector({zeros_of(c), file_.take(name + ".v_proj.bias", {c})})};
        return {linear(name + ".q_proj", c, c), kv, linear(name + ".out_proj", c, c)};
    }
    Mlp mlp(const std::string& block, int64_t c, int64_t hidden) {
        return {linear(block + ".fc1", hidden, c), linear(block + ".fc2", c, hidden)};
    }

  private:
    WeightPrecision unquantized() const {
        using enum WeightPrecision;
        return precision_ == quantized_or_f16    ? f16
               : precision_ == quantized_or_bf16 ? bf16
                                                 : precision_;
    }

    TensorSource& file_;
    WeightStore& weights_;
    WeightPrecision precision_;
};

// fp8 would round the features that the convolutions read.
WeightPrecision of_convolutions(const Precision& precision) {
    using enum WeightPrecision;
    if (precision.weights != fp8) return precision.weights;
    return precision.activations == Dtype::bf16 ? bf16 : f16;
}

Encoder read_encoder(TensorSource& file, WeightStore& weights, const Config& config,
                     const Precision& precision) {
    LayerReader layers(file, weights, precision.weights);
    const WeightPrecision convolutions = of_convolutions(precision);
    const int64_t c = config.n_audio_state;
    Encoder encoder;
    encoder.n_head = config.n_audio_head;
    encoder.conv1 =
        weights.convolution(file.take("encoder.conv1.weight", {c, config.n_mels, 3}), convolutions);
    encoder.conv1_bias = weights.vector({file.take("encoder.conv1.bias", {c})});
    encoder.conv2 = weights.convolution(file.take("encoder.conv2.weight", {c, c, 3}), convolutions);
    encoder.conv2_bias = weights.vector({file.take("encoder.conv2.bias", {c})});
    encoder.positions =
        weights.table(file.take("encoder.embed_positions.weight", {config.n_audio_ctx, c}));
    for (int64_t i = 0; i < config.n_audio_layer; ++i) {
        const std::string block = concat("encoder.layers.", i);
        encoder.blocks.push_back({layers.norm(block + ".self_attn_layer_norm", c),
                                  layers.self_attention(block + ".self_attn", c),
                                  layers.norm(block + ".final_layer_norm", c),
                                  layers.mlp(block, c, config.n_audio_mlp)});
        if (weights.copy_enough()) file.release_tensors();
    }
    encoder.ln_post = layers.norm("encoder.layer_norm", c);
    return encoder;
}

Decoder read_decoder(TensorSource& file, WeightStore& weights, const Config& config,
                     WeightPrecision precision) {
    LayerReader layers(file, weights, precision);
    const int64_t c = config.n_text_state;
    Decoder decoder;
    decoder.token_embedding =
        weights.matrix({file.take("decoder.embed_tokens.weight", {config.n_vocab, c})});
    decoder.positions =
        weights.table(file.take("decoder.embed_positions.weight", {config.n_text_ctx, c}));
    for (int64_t i = 0; i < config.n_text_layer; ++i) {
        const std::string block = concat("decoder.layers.", i);
        decoder.blocks.push_back({layers.norm(block + ".self_attn_layer_norm", c),
                                  layers.self_attention(block + ".self_attn", c),
                                  layers.norm(block + ".encoder_attn_layer_norm", c),
                                  layers.cross_attention(block + ".encoder_attn", c),
                                  layers.norm(block + ".final_layer_norm", c),
                                  layers.mlp(block, c, config.n_text_mlp)});
        if (weights.copy_enough()) file.release_tensors();
    }
    decoder.ln = layers.norm("decoder.layer_norm", c);
    decoder.n_head = config.n_text_head;
    return decoder;
}

Model read_tensors(TensorSource& file, const Config& config, Precision precision,
                   const MemorySource& memory, int threads) {
    WeightStore weights(precision.weights, memory, threads);
    weights.gather();
    Encoder encoder = read_encoder(file, weights, config, precision);
    Decoder decoder = read_decoder(file, weights, config, precision.weights);
    encoder.activations = decoder.activations = precision.activations;
    weights.copy_waiting();
    file.release_tensors();
    return {config, precision, std::move(encoder), std::move(decoder), std::move(weights)};
}

}  // namespace

Model read_model(ModelFile& file, Precision precision, const MemorySource& memory, int threads) {
    if (precision.weights == WeightPrecision::as_stored && file.int8())
        precision = precision_of("int8");
    const ProfileSpan span("load");
    Model model = naming(file.tensors(), [&] {
        return read_tensors(file.tensors(), file.config(), precision, memory, threads);
    });
    add_memory("weights", static_cast<int64_t>(model.weights.bytes()));
    return model;
}

Model load_model(const std::filesystem::path& path, Precision precision, const MemorySource& memory,
                 int threads) {
    return read_model(*open_model(path), precision, memory, threads);
}

Model random_model(const Config& config, Precision precision, uint64_t seed,
                   const MemorySource& memory) {
    RandomTensors file(seed);
    return read_tensors(file, config, precision, memory, 1);
}

}  // namespace hark::whisper
