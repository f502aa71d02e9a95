// Writes the demo model's safetensors in other publishers' formats.
#pragma once

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/half.h"
#include "formats/safetensors.h"
#include "support/process.h"
#include "support/tensor_bytes.h"
#include "support/torch_writer.h"
#include "text/bpe.h"

namespace hark::test {

struct Renamed {
    const char *hugging_face, *openai;
};

// A block's modules; a decoder's has all of them, an encoder's no cross-attention.
inline const std::vector<Renamed> kBlock = {{"self_attn_layer_norm", "attn_ln"},
                                            {"self_attn.q_proj", "attn.query"},
                                            {"self_attn.k_proj", "attn.key"},
                                            {"self_attn.v_proj", "attn.value"},
                                            {"self_attn.out_proj", "attn.out"},
                                            {"encoder_attn_layer_norm", "cross_attn_ln"},
                                            {"encoder_attn.q_proj", "cross_attn.query"},
                                            {"encoder_attn.k_proj", "cross_attn.key"},
                                            {"encoder_attn.v_proj", "cross_attn.value"},
                                            {"encoder_attn.out_proj", "cross_attn.out"},
                                            {"final_layer_norm", "mlp_ln"},
                                            {"fc1", "mlp.0"},
                                            {"fc2", "mlp.2"}};

class DemoTensors {
  public:
    DemoTensors() : file_(source_dir() / "models/whisper-demo/model.safetensors") {}

    const SafetensorsFile& file() const { return file_; }
    bool has(const std::string& name) const { return file_.find("model." + name) != nullptr; }
    Tensor tensor(const std::string& name) const {
        return file_.tensor(*file_.find("model." + name));
    }
    // The names by both, of `text_layers` of the four layers of the decoder.
    std::vector<std::pair<std::string, std::string>> names(int text_layers) const {
        std::vector<std::pair<std::string, std::string>> names = {
            {"encoder.embed_positions.weight", "encoder.positional_embedding"},
            {"decoder.embed_positions.weight", "decoder.positional_embedding"}};
        const auto add = [&](const std::string& name, const std::string& openai) {
            for (const char* kind : {".weight", ".bias"})
                if (has(name + kind)) names.push_back({name + kind, openai + kind});
        };
        add("encoder.conv1", "encoder.conv1");
        add("encoder.conv2", "encoder.conv2");
        add("encoder.layer_norm", "encoder.ln_post");
        add("decoder.embed_tokens", "decoder.token_embedding");
        add("decoder.layer_norm", "decoder.ln");
        for (const std::string part : {"encoder", "decoder"})
            for (int layer = 0; layer < (part == "decoder" ? text_layers : 4); ++layer)
                for (const Renamed& module : kBlock)
                    add(part + ".layers." + std::to_string(layer) + "." + module.hugging_face,
                        part + ".blocks." + std::to_string(layer) + "." + module.openai);
        return names;
    }

  private:
    SafetensorsFile file_;
};

// OpenAI's .pt.
inline void write_openai(const std::filesystem::path& path, int text_layers = 4) {
    const DemoTensors demo;
    std::vector<TorchTensor> tensors;
    ZipMembers members = {{"demo/data.pkl", ""}, {"demo/byteorder", "little"}};
    for (const auto& [name, openai] : demo.names(text_layers)) {
        const Tensor tensor = demo.tensor(name);
        const std::vector<int64_t> shape(tensor.shape.begin(), tensor.shape.begin() + tensor.rank);
        const std::string key = std::to_string(tensors.size());
        tensors.push_back({openai, "HalfStorage", key, tensor.size(), shape, contiguous(shape)});
        members.push_back({"demo/data/" + key, bytes_of(tensor)});
    }
    members[0].second = pickled({{"n_mels", 80},
                                 {"n_vocab", 5448},
                                 {"n_audio_ctx", 1500},
                                 {"n_audio_state", 256},
                                 {"n_audio_head", 4},
                                 {"n_audio_layer", 4},
                                 {"n_text_ctx", 448},
                                 {"n_text_state", 256},
                                 {"n_text_head", 4},
                                 {"n_text_layer", text_layers}},
                                tensors);
    write_text(path, zip_of(members));
}

// The tokens before <|endoftext|> as a tiktoken rank file.
inline void write_ranks(const std::filesystem::path& path) {
    const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const Bpe bpe = Bpe::from_directory(source_dir() / "models/whisper-demo");
    std::string text;
    for (int32_t id = 0; id < *bpe.special("<|endoftext|>"); ++id) {
        uint32_t bits = 0, held = 0;
        for (const char byte : bpe.bytes_of(id)) {
            bits = bits << 8 | static_cast<unsigned char>(byte);
            for (held += 8; held >= 6; held -= 6) text += digits[bits >> (held - 6) & 63];
        }
        if (held > 0) text += digits[bits << (6 - held) & 63];
        text += " " + std::to_string(id) + "\n";
    }
    write_text(path, text);
}

// CTranslate2's model.bin.
class Ctranslate2Writer {
  public:
    enum class Type { f16, int8, int16 };
    explicit Ctranslate2Writer(Type type) : type_(type) {}

    std::string text() {
        scalar("encoder/num_heads", 4);
        scalar("decoder/num_heads", 4);
        for (const std::string part : {"encoder", "decoder"}) {
            variable(part + "/position_encodings/encodings", {part + ".embed_positions.weight"});
            norm(part + "/layer_norm", part + ".layer_norm");
            for (int i = 0; i < 4; ++i) block(part, std::to_string(i));
        }
        linear("encoder/conv1", {"encoder.conv1"});
        linear("encoder/conv2", {"encoder.conv2"});
        matrix("decoder/embeddings/weight", {"decoder.embed_tokens.weight"});
        return little(6, 4) + named("WhisperSpec") + little(3, 4) + little(count_, 4) + variables_ +
               little(1, 4) + named("decoder/projection/weight") +
               named("decoder/embeddings/weight");
    }

  private:
    using Names = std::vector<std::string>;

    static std::string named(const std::string& name) {
        return little(name.size() + 1, 2) + name + '\0';
    }
    void add(const std::string& name, const std::vector<int64_t>& shape, int dtype,
             const std::string& data) {
        ++count_;
        variables_ += named(name) + little(shape.size(), 1);
        for (const int64_t dim : shape) variables_ += little(static_cast<uint64_t>(dim), 4);
        variables_ += little(static_cast<uint64_t>(dtype), 1) + little(data.size(), 4) + data;
    }
    void scalar(const std::string& name, uint64_t value) { add(name, {}, 2, little(value, 2)); }

    // The tensors one below the other; one that is not there is as many zeros as another has.
    std::vector<uint16_t> stacked(const Names& names, std::vector<int64_t>& shape) const {
        std::vector<uint16_t> values;
        // Keys have no bias, values do.
        const Tensor first = demo_.tensor(demo_.has(names[0]) ? names[0] : names.back());
        shape.assign(first.shape.begin(), first.shape.begin() + first.rank);
        for (const std::string& name : names) {
            const size_t at = values.size();
            values.resize(at + static_cast<size_t>(first.size()));
            if (demo_.has(name))
                std::memcpy(values.data() + at, demo_.tensor(name).data, first.bytes());
        }
        shape[0] *= static_cast<int64_t>(names.size());
        return values;
    }
    void variable(const std::string& name, const Names& names) {
        std::vector<int64_t> shape;
        const std::vector<uint16_t> values = stacked(names, shape);
        add(name, shape, 4, {reinterpret_cast<const char*>(values.data()), values.size() * 2});
    }
    void matrix(const std::string& name, const Names& names) {
        if (type_ == Type::f16) return variable(name, names);
        std::vector<int64_t> shape;
        const std::vector<uint16_t> values = stacked(names, shape);
        if (type_ == Type::int16) return int16(name, shape, values);
        const size_t rows = static_cast<size_t>(shape[0]), size = values.size() / rows;
        std::string data, scales;
        for (size_t row = 0; row < rows; ++row) {
            float largest = 0;
            for (size_t i = 0; i < size; ++i)
                largest = std::max(largest, std::abs(to_float(f16_t{values[row * size + i]})));
            const float scale = 127 / largest;
            for (size_t i = 0; i < size; ++i)
                data += static_cast<char>(
                    std::nearbyint(to_float(f16_t{values[row * size + i]}) * scale));
            scales.append(reinterpret_cast<const char*>(&scale), sizeof scale);
        }
        add(name, shape, 1, data);
        add(name + "_scale", {shape[0]}, 0, scales);
    }
    // One scale, by which the largest becomes 1024.
    void int16(const std::string& name, const std::vector<int64_t>& shape,
               const std::vector<uint16_t>& values) {
        float largest = 0;
        for (const uint16_t value : values)
            largest = std::max(largest, std::abs(to_float(f16_t{value})));
        const float scale = 1024 / largest;
        std::string data;
        for (const uint16_t value : values)
            data += little(
                static_cast<uint64_t>(std::lround(std::nearbyint(to_float(f16_t{value}) * scale))),
                2);
        add(name, shape, 2, data);
        add(name + "_scale", {}, 0, {reinterpret_cast<const char*>(&scale), sizeof scale});
    }
    void norm(const std::string& name, const std::string& from) {
        variable(name + "/gamma", {from + ".weight"});
        variable(name + "/beta", {from + ".bias"});
    }
    void linear(const std::string& name, const Names& modules) {
        Names weights, biases;
        for (const std::string& module : modules) {
            weights.push_back(module + ".weight");
            biases.push_back(module + ".bias");
        }
        matrix(name + "/weight", weights);
        variable(name + "/bias", biases);
    }
    void block(const std::string& part, const std::string& i) {
        const std::string to = part + "/layer_" + i, from = part + ".layers." + i;
        norm(to + "/self_attention/layer_norm", from + ".self_attn_layer_norm");
        linear(
            to + "/self_attention/linear_0",
            {from + ".self_attn.q_proj", from + ".self_attn.k_proj", from + ".self_attn.v_proj"});
        linear(to + "/self_attention/linear_1", {from + ".self_attn.out_proj"});
        norm(to + "/ffn/layer_norm", from + ".final_layer_norm");
        linear(to + "/ffn/linear_0", {from + ".fc1"});
        linear(to + "/ffn/linear_1", {from + ".fc2"});
        if (part == "encoder") return;
        norm(to + "/attention/layer_norm", from + ".encoder_attn_layer_norm");
        linear(to + "/attention/linear_0", {from + ".encoder_attn.q_proj"});
        linear(to + "/attention/linear_1",
               {from + ".encoder_attn.k_proj", from + ".encoder_attn.v_proj"});
        linear(to + "/attention/linear_2", {from + ".encoder_attn.out_proj"});
    }

    DemoTensors demo_;
    Type type_;
    uint64_t count_ = 0;
    std::string variables_;
};

}  // namespace hark::test
