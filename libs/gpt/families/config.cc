#include "gpt/families/config.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"

namespace hark::gpt {
namespace {

using nlohmann::json;

int64_t whole_number(const json& value, const char* key, int64_t min, int64_t max,
                     const std::string& where) {
    const bool fits = value.is_number_integer() && value >= min && value <= max;
    require(fits, where, ": '", key, "': expected a whole number from ", min, " to ", max,
            ", found ", value.is_number() ? value.dump() : value.type_name());
    return value.get<int64_t>();
}

int64_t positive(const json& root, const char* key, int64_t max, const std::string& where) {
    require(root.contains(key), where, ": expected '", key, "', found none");
    return whole_number(root[key], key, 1, max, where);
}

bool given(const json& root, const char* key) { return root.contains(key) && !root[key].is_null(); }

bool boolean(const json& root, const char* key, bool otherwise, const std::string& where) {
    if (!given(root, key)) return otherwise;
    require(root[key].is_boolean(), where, ": '", key, "': expected true or false, found ",
            root[key].type_name());
    return root[key].get<bool>();
}

void require_default(const json& root, const char* key, bool expected, const std::string& where) {
    require(boolean(root, key, expected, where) == expected, where, ": '", key, "': expected ",
            expected ? "true" : "false", ", the only supported value");
}

Activation activation_of(const json& root, const std::string& where) {
    if (!given(root, "activation_function")) return Activation::gelu_tanh;
    const json& name = root["activation_function"];
    // Three names of one formula, Hendrycks & Gimpel 2016, section 2.
    for (const char* tanh : {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"})
        if (name == tanh) return Activation::gelu_tanh;
    require(name == "gelu", where, ": 'activation_function': expected gelu_new or gelu, found ",
            name.is_string() ? name.get<std::string>() : std::string(name.type_name()));
    return Activation::gelu;
}

// Written as 50256, [50256, 50257], or not at all.
std::vector<int32_t> eos_ids(const json& root, int64_t n_vocab, const std::string& where) {
    std::vector<int32_t> ids;
    if (!given(root, "eos_token_id")) return ids;
    const json& value = root["eos_token_id"];
    for (const json& id : value.is_array() ? value : json::array({value}))
        ids.push_back(
            static_cast<int32_t>(whole_number(id, "eos_token_id", 0, n_vocab - 1, where)));
    return ids;
}

}  // namespace

Config parse_config(std::string_view text, const std::string& where) {
    const json root = parse_json(text, where);
    require(root.is_object(), where, ": expected a JSON object");
    const json type = root.value("model_type", json());
    require(type == "gpt2", where, ": expected model_type gpt2, found ",
            type.is_string() ? type.get<std::string>() : std::string(type.type_name()));
    Config config;
    config.n_vocab = positive(root, "vocab_size", 1 << 24, where);
    config.n_positions = positive(root, "n_positions", 1 << 20, where);
    config.n_embd = positive(root, "n_embd", 1 << 16, where);
    config.n_layer = positive(root, "n_layer", 1024, where);
    config.n_head = positive(root, "n_head", 1024, where);
    config.n_inner =
        given(root, "n_inner") ? positive(root, "n_inner", 1 << 18, where) : 4 * config.n_embd;
    require(config.n_embd % config.n_head == 0, where, ": expected 'n_head' to divide 'n_embd', ",
            "found ", config.n_head, " and ", config.n_embd);
    if (given(root, "layer_norm_epsilon")) {
        const json& epsilon = root["layer_norm_epsilon"];
        require(epsilon.is_number() && epsilon > 0 && epsilon < 1, where,
                ": 'layer_norm_epsilon': expected a number between 0 and 1");
        config.layer_norm_epsilon = epsilon.get<float>();
    }
    config.activation = activation_of(root, where);
    config.tie_word_embeddings = boolean(root, "tie_word_embeddings", true, where);
    config.eos_token_ids = eos_ids(root, config.n_vocab, where);
    require_default(root, "scale_attn_weights", true, where);
    require_default(root, "scale_attn_by_inverse_layer_idx", false, where);
    require_default(root, "add_cross_attention", false, where);
    return config;
}

Config load_config(const std::filesystem::path& directory) {
    const std::filesystem::path path = directory / "config.json";
    return parse_config(read_file(path, size_t{1} << 20), path.string());
}

std::string format_config(const Config& c, Dtype dtype) {
    nlohmann::ordered_json root = {
        {"architectures", {"GPT2LMHeadModel"}},
        {"model_type", "gpt2"},
        {"activation_function", c.activation == Activation::gelu ? "gelu" : "gelu_new"},
        {"n_positions", c.n_positions},
        {"n_embd", c.n_embd},
        {"n_head", c.n_head},
        {"n_layer", c.n_layer},
        {"n_inner", c.n_inner},
        {"layer_norm_epsilon", c.layer_norm_epsilon},
        {"vocab_size", c.n_vocab},
        {"torch_dtype", dtype == Dtype::f32   ? "float32"
                        : dtype == Dtype::f16 ? "float16"
                                              : "bfloat16"},
        {"tie_word_embeddings", c.tie_word_embeddings}};
    if (!c.eos_token_ids.empty()) {
        root["bos_token_id"] = c.eos_token_ids[0];
        root["eos_token_id"] = c.eos_token_ids[0];
    }
    return root.dump(2) + "\n";
}

}  // namespace hark::gpt
