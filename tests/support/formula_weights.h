// Weights by formula, for models of the official sizes without the official files. The formula is
// described in tests/golden/formula_weights.py, which gives the same bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hark::test {

struct FormulaTensor {
    std::string name;                 // as in a Hugging Face checkpoint
    std::vector<std::int64_t> shape;  // row-major
};

// value = float(offset + scale * u), u in [-1, 1) by the tensor's name and the element's index.
struct Formula {
    std::uint64_t hash = 0;
    double offset = 0;
    double scale = 0;

    Formula(std::string_view name, const std::vector<std::int64_t>& shape) {
        hash = 0xCBF29CE484222325u;
        for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
        if (name.ends_with("layer_norm.weight")) {
            offset = 1;
            scale = 0.125;
        } else if (name.ends_with(".bias")) {
            scale = 0.125;
        } else if (name.ends_with("embed_positions.weight")) {
            scale = 0.0625;
        } else {
            const bool sharp = name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight");
            double fan_in = 1;
            for (std::size_t i = 1; i < shape.size(); ++i) fan_in *= static_cast<double>(shape[i]);
            scale = std::floor(4096 * std::sqrt((sharp ? 6.75 : 3.0) / fan_in) + 0.5) / 4096;
        }
    }

    std::uint64_t bits(std::uint64_t index) const {  // z
        std::uint64_t z = hash + index + 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    float operator()(std::uint64_t index) const {
        const double u = static_cast<double>(bits(index) >> 40) / 8388608 - 1;
        return static_cast<float>(offset + scale * u);
    }
    std::vector<float> values(std::size_t count) const;  // of the first elements
};

// All elements of a tensor.
inline std::vector<float> formula_tensor(const FormulaTensor& tensor) {
    const Formula formula(tensor.name, tensor.shape);
    std::size_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= static_cast<std::size_t>(size);
    return formula.values(count);
}

// The tensors of a Whisper checkpoint, in the order of tests/golden/official_shapes.json.
inline std::vector<FormulaTensor> whisper_layout(std::int64_t d, std::int64_t n_mels,
                                                 std::int64_t n_vocab, int encoder_layers,
                                                 int decoder_layers) {
    std::vector<FormulaTensor> tensors;
    const auto pair = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
        tensors.push_back({name + ".weight", shape});
        tensors.push_back({name + ".bias", {shape[0]}});
    };
    const auto attention = [&](const std::string& name) {
        tensors.push_back({name + ".k_proj.weight", {d, d}});
        for (const char* part : {".v_proj", ".q_proj", ".out_proj"}) pair(name + part, {d, d});
        pair(name + "_layer_norm", {d});
    };
    const auto layers = [&](const std::string& stack, int count, bool with_cross) {
        for (int i = 0; i < count; ++i) {
            const std::string layer = stack + ".layers." + std::to_string(i);
            attention(layer + ".self_attn");
            if (with_cross) attention(layer + ".encoder_attn");
            pair(layer + ".fc1", {4 * d, d});
            pair(layer + ".fc2", {d, 4 * d});
            pair(layer + ".final_layer_norm", {d});
        }
        pair(stack + ".layer_norm", {d});
    };
    pair("model.encoder.conv1", {d, n_mels, 3});
    pair("model.encoder.conv2", {d, d, 3});
    tensors.push_back({"model.encoder.embed_positions.weight", {1500, d}});
    layers("model.encoder", encoder_layers, false);
    tensors.push_back({"model.decoder.embed_tokens.weight", {n_vocab, d}});
    tensors.push_back({"model.decoder.embed_positions.weight", {448, d}});
    layers("model.decoder", decoder_layers, true);
    return tensors;
}

}  // namespace hark::test
