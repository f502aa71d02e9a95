// The demonstration model written as one of whisper.cpp's files.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/half.h"
#include "formats/ggml.h"
#include "kernels/quant/quantize.h"
#include "support/ggml_writer.h"
#include "support/tensor_bytes.h"
#include "whisper/model/model_file.h"
#include "whisper/support.h"

namespace hark::test {

// The demonstration model's tensors by both names, and the shapes that are asked for.
struct Named {
    std::string hugging_face, openai;
    std::vector<int64_t> shape;
};

inline std::vector<Named> demo_tensors() {
    const int64_t c = 256;
    std::vector<Named> list = {
        {"encoder.conv1.weight", "encoder.conv1.weight", {c, 80, 3}},
        {"encoder.conv1.bias", "encoder.conv1.bias", {c}},
        {"encoder.conv2.weight", "encoder.conv2.weight", {c, c, 3}},
        {"encoder.conv2.bias", "encoder.conv2.bias", {c}},
        {"encoder.embed_positions.weight", "encoder.positional_embedding", {1500, c}},
        {"encoder.layer_norm.weight", "encoder.ln_post.weight", {c}},
        {"encoder.layer_norm.bias", "encoder.ln_post.bias", {c}},
        {"decoder.embed_tokens.weight", "decoder.token_embedding.weight", {5448, c}},
        {"decoder.embed_positions.weight", "decoder.positional_embedding", {448, c}},
        {"decoder.layer_norm.weight", "decoder.ln.weight", {c}},
        {"decoder.layer_norm.bias", "decoder.ln.bias", {c}}};
    const auto both = [&](const std::string& from, const std::string& to,
                          std::vector<int64_t> shape, bool bias = true) {
        list.push_back({from + ".weight", to + ".weight", shape});
        if (bias) list.push_back({from + ".bias", to + ".bias", {shape[0]}});
    };
    const auto attention = [&](const std::string& from, const std::string& to) {
        both(from + ".q_proj", to + ".query", {c, c});
        both(from + ".k_proj", to + ".key", {c, c}, false);
        both(from + ".v_proj", to + ".value", {c, c});
        both(from + ".out_proj", to + ".out", {c, c});
    };
    for (const std::string side : {"encoder", "decoder"})
        for (int i = 0; i < 4; ++i) {
            const std::string from = concat(side, ".layers.", i);
            const std::string to = concat(side, ".blocks.", i);
            attention(from + ".self_attn", to + ".attn");
            both(from + ".self_attn_layer_norm", to + ".attn_ln", {c});
            if (side == "decoder") {
                attention(from + ".encoder_attn", to + ".cross_attn");
                both(from + ".encoder_attn_layer_norm", to + ".cross_attn_ln", {c});
            }
            both(from + ".fc1", to + ".mlp.0", {4 * c, c});
            both(from + ".fc2", to + ".mlp.2", {c, 4 * c});
            both(from + ".final_layer_norm", to + ".mlp_ln", {c});
        }
    return list;
}

// TensorSource takes a braced list.
inline Tensor taken(TensorSource& source, const std::string& name,
                    const std::vector<int64_t>& shape) {
    if (shape.size() == 1) return source.take(name, {shape[0]});
    if (shape.size() == 2) return source.take(name, {shape[0], shape[1]});
    return source.take(name, {shape[0], shape[1], shape[2]});
}

// The bytes of a matrix in blocks.
inline std::string quantized(const Tensor& matrix, Dtype dtype) {
    std::vector<float> values(static_cast<size_t>(matrix.size()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = to_float(matrix.as<f16_t>()[i]);
    std::string bytes(row_bytes(dtype, matrix.size()), '\0');
    quantize(bytes.data(), values.data(), dtype, matrix.size());
    return bytes;
}

// The demonstration model, its tensors as its own file stores them, or its matrices in blocks of
// `dtype` as whisper.cpp's quantize makes them.
inline GgmlParts ggml_demo(Dtype dtype = Dtype::f16) {
    GgmlParts parts;
    const int64_t file_type = dtype == Dtype::f16 ? 1 : 2000;
    parts.sizes = {5448, 1500, 256, 4, 4, 448, 256, 4, 4, 80, file_type};
    parts.mels = 80;
    const Bpe bpe = Bpe::from_directory(whisper_demo());
    for (int32_t id = 0; id < 3840; ++id) parts.tokens.push_back(bpe.bytes_of(id));
    const std::unique_ptr<whisper::ModelFile> folder = whisper::open_model(whisper_demo());
    for (const Named& named : demo_tensors()) {
        const Tensor tensor = taken(folder->tensors(), named.hugging_face, named.shape);
        std::vector<int64_t> lengths = named.shape;
        const bool conv = named.openai.find("conv") != std::string::npos;
        if (conv && lengths.size() == 1) lengths.push_back(1);
        const bool blocks = is_quantized(dtype) && tensor.rank == 2 &&
                            named.openai.find("positional") == std::string::npos;
        parts.tensors.push_back(blocks ? GgmlParts::tensor(named.openai, ggml_type(dtype), lengths,
                                                           quantized(tensor, dtype))
                                       : GgmlParts::tensor(named.openai, ggml_type(tensor.dtype),
                                                           lengths, bytes_of(tensor)));
    }
    return parts;
}

}  // namespace hark::test
