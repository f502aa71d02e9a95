#include "hub/tensor_list.h"

#include <functional>
#include <numeric>

#include "core/error.h"
#include "core/finite.h"
#include "core/profile/profile.h"
#include "gpt/families/tensor_spec.h"
#include "kernels/cpu/cpu.h"
#include "kernels/quant/quantize.h"

namespace hark::models {
namespace {

// Adds a model's tensors one by one.
class List {
  public:
    void tensor(const std::string& name, std::vector<int64_t> shape) {
        const bool matrix = shape.size() > 1 && !name.ends_with("embed_positions.weight");
        tensors.push_back({.name = name, .shape = std::move(shape), .matrix = matrix});
    }
    void norm(const std::string& name, int64_t c) {
        tensor(name + ".weight", {c});
        tensor(name + ".bias", {c});
    }
    void linear(const std::string& name, int64_t out, int64_t in) {
        tensor(name + ".weight", {out, in});
        tensor(name + ".bias", {out});
    }
    void attention(const std::string& name, int64_t c) {
        tensor(name + ".k_proj.weight", {c, c});  // without a bias
        for (const char* part : {".v_proj", ".q_proj", ".out_proj"}) linear(name + part, c, c);
    }
    // One layer of the encoder or of the decoder.
    void layer(const std::string& name, int64_t c, int64_t mlp, bool cross) {
        attention(name + ".self_attn", c);
        norm(name + ".self_attn_layer_norm", c);
        if (cross) {
            attention(name + ".encoder_attn", c);
            norm(name + ".encoder_attn_layer_norm", c);
        }
        linear(name + ".fc1", mlp, c);
        linear(name + ".fc2", c, mlp);
        norm(name + ".final_layer_norm", c);
    }

    std::vector<ModelTensor> tensors;
};

const char* kind_of(gpt::Part part) {
    using enum gpt::Part;
    switch (part) {
        case token_table:
            return "token_table";
        case position_table:
            return "positions";
        case lm_head:
            return "output";
        case qkv:
            return "attention_qkv";
        case q:
            return "attention_q";
        case k:
            return "attention_k";
        case v:
            return "attention_v";
        case q_a:
            return "attention_q_a";
        case q_b:
            return "attention_q_b";
        case kv_a:
            return "attention_kv_a";
        case kv_b:
            return "attention_kv_b";
        case k_b:
            return "attention_k_b";
        case v_b:
            return "attention_v_b";
        case attn_out:
            return "attention_output";
        case gate_up:
            return "mlp_gate_up";
        case gate:
            return "mlp_gate";
        case up:
            return "mlp_up";
        case down:
            return "mlp_down";
        case router:
            return "router";
        case shared_gate:
            return "shared_gate";
        case shared_up:
            return "shared_up";
        case shared_down:
            return "shared_down";
        case expert_gate:
            return "experts_gate";
        case expert_up:
            return "experts_up";
        case expert_down:
            return "experts_down";
        default:
            return "norms_and_biases";
    }
}

}  // namespace

int64_t ModelTensor::size() const {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<ModelTensor> tensor_list(const whisper::Config& config) {
    List list;
    const int64_t a = config.n_audio_state, t = config.n_text_state;
    for (const auto& [name, in] :
         {std::pair{"encoder.conv1", config.n_mels}, {"encoder.conv2", a}}) {
        list.tensor(concat(name, ".weight"), {a, in, 3});
        list.tensor(concat(name, ".bias"), {a});
    }
    list.tensor("encoder.embed_positions.weight", {config.n_audio_ctx, a});
    for (int64_t i = 0; i < config.n_audio_layer; ++i)
        list.layer(concat("encoder.layers.", i), a, config.n_audio_mlp, false);
    list.norm("encoder.layer_norm", a);
    list.tensor("decoder.embed_tokens.weight", {config.n_vocab, t});
    list.tensor("decoder.embed_positions.weight", {config.n_text_ctx, t});
    for (int64_t i = 0; i < config.n_text_layer; ++i)
        list.layer(concat("decoder.layers.", i), t, config.n_text_mlp, true);
    list.norm("decoder.layer_norm", t);
    return std::move(list.tensors);
}

std::vector<ModelTensor> tensor_list(const gpt::DecoderConfig& config) {
    std::vector<ModelTensor> tensors;
    for (const gpt::TensorSpec& spec : gpt::tensor_specs(config)) {
        const int64_t n = spec.rows, k = spec.columns;
        std::vector<int64_t> shape = {n};
        if (k > 0) shape = spec.in_out ? std::vector{k, n} : std::vector{n, k};
        tensors.push_back(
            {spec.name, shape, spec.is_matrix(), spec.in_out, kind_of(spec.part), spec.is_norm()});
    }
    return tensors;
}

std::vector<ModelTensor> tensor_list(const ModelHandle& model) {
    return model.whisper ? tensor_list(model.whisper->config()) : tensor_list(model.gpt->config());
}

Tensor take(TensorSource& source, const ModelTensor& tensor) {
    const std::vector<int64_t>& n = tensor.shape;
    if (n.size() == 1) return source.take(tensor.name, {n[0]});
    if (n.size() == 3) return source.take(tensor.name, {n[0], n[1], n[2]});
    if (tensor.in_out && source.stores_out_in()) return source.take(tensor.name, {n[1], n[0]});
    return source.take(tensor.name, {n[0], n[1]});
}

std::vector<float> turned(const std::vector<float>& values, int64_t rows, int64_t columns) {
    std::vector<float> out(values.size());
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
            out[static_cast<size_t>(j * rows + i)] = values[static_cast<size_t>(i * columns + j)];
    return out;
}

std::vector<float> values_of(TensorSource& source, const ModelTensor& tensor) {
    const ProfileSpan span("read");
    const Tensor stored = take(source, tensor);
    std::vector<float> values(static_cast<size_t>(stored.size()));
    if (is_quantized(stored.dtype)) {
        dequantize(values.data(), stored.data, stored.dtype, stored.size());
    } else {
        require(
            stored.dtype == Dtype::f32 || stored.dtype == Dtype::f16 || stored.dtype == Dtype::bf16,
            source.where(), ": ", tensor.name, ": expected f32, f16, bf16 or blocks, found ",
            stored);
        cpu_kernels().widen(values.data(), stored.data, stored.dtype, stored.size());
    }
    source.release_tensors();
    require(all_finite(values), source.where(), ": ", tensor.name,
            ": expected finite values, found one that is not");
    if (tensor.in_out && source.stores_out_in())
        return turned(values, tensor.shape[1], tensor.shape[0]);
    return values;
}

}  // namespace hark::models
