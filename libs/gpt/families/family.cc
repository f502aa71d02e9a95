#include "gpt/families/family.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "gpt/families/json_config.h"
#include "gpt/families/rope_table.h"

namespace hark::gpt {

extern const Family kDeepseekV2, kDeepseekV3, kGemma2, kGemma3, kGpt2, kGptOss, kGranite, kLlama,
    kMistral, kMixtral, kOlmo2, kOlmo3, kPhi3, kQwen2, kQwen3, kQwen3Moe, kSmolLm3;

namespace {

constexpr const Family* kFamilies[] = {&kGpt2,       &kLlama,     &kMistral, &kQwen2,    &kQwen3,
                                       &kGemma2,     &kGemma3,    &kPhi3,    &kSmolLm3,  &kOlmo2,
                                       &kOlmo3,      &kGranite,   &kMixtral, &kQwen3Moe, &kGptOss,
                                       &kDeepseekV2, &kDeepseekV3};

// Those of most families since Llama.
constexpr PartName kLlamaNames[] = {
    {Part::token_table, "embed_tokens.weight"},
    {Part::lm_head, "lm_head.weight"},
    {Part::final_norm, "norm.weight"},
    {Part::attn_norm, "input_layernorm.weight"},
    {Part::q, "self_attn.q_proj.weight"},
    {Part::q_bias, "self_attn.q_proj.bias"},
    {Part::k, "self_attn.k_proj.weight"},
    {Part::k_bias, "self_attn.k_proj.bias"},
    {Part::v, "self_attn.v_proj.weight"},
    {Part::v_bias, "self_attn.v_proj.bias"},
    {Part::q_norm, "self_attn.q_norm.weight"},
    {Part::k_norm, "self_attn.k_norm.weight"},
    {Part::attn_out, "self_attn.o_proj.weight"},
    {Part::attn_out_bias, "self_attn.o_proj.bias"},
    {Part::sinks, "self_attn.sinks"},
    {Part::q_a, "self_attn.q_a_proj.weight"},
    {Part::q_a_norm, "self_attn.q_a_layernorm.weight"},
    {Part::q_b, "self_attn.q_b_proj.weight"},
    {Part::kv_a, "self_attn.kv_a_proj_with_mqa.weight"},
    {Part::kv_a_norm, "self_attn.kv_a_layernorm.weight"},
    {Part::kv_b, "self_attn.kv_b_proj.weight"},
    {Part::k_b, "self_attn.k_b_proj.{}.weight"},
    {Part::v_b, "self_attn.v_b_proj.{}.weight"},
    {Part::mlp_norm, "post_attention_layernorm.weight"},
    {Part::gate, "mlp.gate_proj.weight"},
    {Part::up, "mlp.up_proj.weight"},
    {Part::down, "mlp.down_proj.weight"},
    {Part::router, "mlp.gate.weight"},
    {Part::router_correction, "mlp.gate.e_score_correction_bias"},
    {Part::shared_gate, "mlp.shared_experts.gate_proj.weight"},
    {Part::shared_up, "mlp.shared_experts.up_proj.weight"},
    {Part::shared_down, "mlp.shared_experts.down_proj.weight"},
    {Part::expert_gate, "mlp.experts.{}.gate_proj.weight"},
    {Part::expert_up, "mlp.experts.{}.up_proj.weight"},
    {Part::expert_down, "mlp.experts.{}.down_proj.weight"},
};

template <class Name>
const Family& find_family(std::string_view name, const char* what, const std::string& where,
                          const Name& name_of) {
    std::string known;
    for (const Family* family : kFamilies) {
        const char* const of = name_of(*family);
        if (of == nullptr) continue;
        if (name == of) return *family;
        known += concat(known.empty() ? "" : ", ", of);
    }
    fail(where, ": expected the ", what, " of a family that is read (", known, "), found ",
         name.empty() ? "none" : concat("'", name, "'"));
}

}  // namespace

namespace {

// After attention and MLP; the norm before the MLP has another name than Llama's.
constexpr PartName kPostNorms[] = {
    {Part::attn_post_norm, "post_attention_layernorm.weight"},
    {Part::mlp_norm, "pre_feedforward_layernorm.weight"},
    {Part::mlp_post_norm, "post_feedforward_layernorm.weight"},
};

}  // namespace

const std::span<const PartName> kPostNormNames = kPostNorms;

const char* part_name(const Family& family, Part part) {
    for (const std::span<const PartName> names :
         {family.names, std::span<const PartName>(kLlamaNames)})
        for (const PartName& name : names)
            if (name.part == part) return name.name;
    fail("internal error: ", family.model_type, ": a tensor without a name");
}

const Family& family_of(std::string_view model_type, const std::string& where) {
    return find_family(model_type, "model_type", where,
                       [](const Family& f) { return f.model_type; });
}

const Family& family_of_gguf(std::string_view architecture, const std::string& where) {
    return find_family(architecture, "architecture", where, [](const Family& f) { return f.gguf; });
}

DecoderConfig read_llama_like(const ConfigReader& in, const char* family,
                              const FamilyDefaults& defaults) {
    DecoderConfig c;
    c.family = family;
    c.n_vocab = in.n_vocab();
    c.n_positions = in.size({"max_position_embeddings", "context_length"}, 1 << 28);
    c.n_embd = in.size({"hidden_size", "embedding_length"}, 1 << 16);
    c.n_layer = in.size({"num_hidden_layers", "block_count"}, 1024);
    c.n_head = in.size({"num_attention_heads", "attention.head_count"}, 1024);
    c.n_kv_head = in.size_or({"num_key_value_heads", "attention.head_count_kv"}, 1024,
                             defaults.n_kv_head > 0 ? defaults.n_kv_head : c.n_head);
    const Key head{"head_dim", "attention.key_length"};
    if (!in.has(head) && defaults.head_dim == 0)
        require(c.n_embd % c.n_head == 0, in.where(), ": expected heads that divide ", c.n_embd,
                " channels, found ", c.n_head);
    c.head_dim =
        in.size_or(head, 1 << 12, defaults.head_dim > 0 ? defaults.head_dim : c.n_embd / c.n_head);
    require(c.n_head % c.n_kv_head == 0, in.where(), ": expected key/value heads that divide ",
            c.n_head, " heads, found ", c.n_kv_head);
    c.n_inner = in.size({"intermediate_size", "feed_forward_length"}, 1 << 20);
    c.norm = NormKind::rms;
    const double eps =
        in.number_or({"rms_norm_eps", "attention.layer_norm_rms_epsilon"}, defaults.norm_eps);
    require(eps > 0 && eps < 1, in.where(), ": expected an epsilon between 0 and 1, found ", eps);
    c.norm_eps = static_cast<float>(eps);
    c.activation = read_activation(in, {"hidden_act", nullptr}, Activation::silu);
    c.gated_mlp = true;
    const bool has_biases = in.boolean_or({"attention_bias", nullptr}, false);
    c.qkv_bias = has_biases || in.has_tensor("blk.0.attn_q.bias");
    c.attn_out_bias = has_biases || in.has_tensor("blk.0.attn_output.bias");
    c.mlp_bias = in.boolean_or({"mlp_bias", nullptr}, false);
    require(!c.mlp_bias, in.where(), ": 'mlp_bias': expected false, the only supported value");
    c.fused_qkv = c.learned_positions = false;
    c.attention_scale = 1 / std::sqrt(static_cast<float>(c.head_dim));
    const double partial = in.number_or({"partial_rotary_factor", nullptr}, 1);
    require(partial > 0 && partial <= 1, in.where(),
            ": 'partial_rotary_factor': expected a number above 0 and at most 1, found ", partial);
    const auto rotary = in.size_or({nullptr, "rope.dimension_count"}, c.head_dim,
                                   static_cast<int64_t>(static_cast<double>(c.head_dim) * partial));
    c.ropes = {rope_table(in.rope(defaults.rope_theta), rotary, c.n_positions, in.where())};
    set_layers(c, 0, [](int64_t) { return false; });
    c.tie_word_embeddings =
        !in.has_lm_head().value_or(!in.boolean_or({"tie_word_embeddings", nullptr}, defaults.tied));
    c.eos_token_ids = in.eos_token_ids(c.n_vocab);
    return c;
}

void set_experts(DecoderConfig& c, const ConfigReader& in, const char* count, const char* n_inner) {
    ExpertConfig& experts = c.experts;
    experts.count = in.size({count, "expert_count"}, 1024);
    // Every expert has tensors of its own: Qwen3-235B has 12,032 experts.
    require(c.n_layer * experts.count <= 1 << 16, in.where(), ": expected at most ", 1 << 16,
            " experts in all layers, found ", c.n_layer, " layers of ", experts.count);
    experts.per_token = in.size({"num_experts_per_tok", "expert_used_count"}, experts.count);
    experts.n_inner = in.size_or({n_inner, "expert_feed_forward_length"}, 1 << 20, c.n_inner);
    for (LayerConfig& layer : c.layers) layer.has_experts = true;
}

bool set_layer_types(DecoderConfig& config, const ConfigReader& in, int64_t window) {
    const std::vector<std::string> types = in.layer_types();
    if (types.empty()) return false;
    require(std::ssize(types) == config.n_layer, in.where(), ": 'layer_types': expected ",
            config.n_layer, ", found ", types.size());
    for (const std::string& type : types)
        require(type == "full_attention" || type == "sliding_attention", in.where(),
                ": 'layer_types': expected full_attention or sliding_attention, found ", type);
    set_layers(config, window,
               [&](int64_t i) { return types[static_cast<size_t>(i)] == "sliding_attention"; });
    return true;
}

Activation read_activation(const ConfigReader& in, const Key& key, Activation otherwise) {
    if (!in.has(key)) return otherwise;
    const std::string name = in.text(key);
    if (name == "silu" || name == "swish") return Activation::silu;
    // Three names of one formula, Hendrycks & Gimpel 2016, section 2.
    for (const char* tanh : {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"})
        if (name == tanh) return Activation::gelu_tanh;
    require(name == "gelu", in.where(), ": '", key.json,
            "': expected silu, gelu_new, gelu_pytorch_tanh or gelu, found ", name);
    return Activation::gelu;
}

DecoderConfig parse_config(std::string_view text, const std::string& where) {
    const nlohmann::json root = parse_json(text, where);
    require(root.is_object(), where, ": expected a JSON object");
    const nlohmann::json* model = &root;
    // A model of several kinds of input keeps that of text apart.
    if (root.contains("text_config") && root["text_config"].is_object()) {
        model = &root["text_config"];
        require(model->contains("model_type"), where, ": expected 'model_type' in text_config");
    }
    const nlohmann::json type = model->value("model_type", nlohmann::json());
    require(type.is_string(), where, ": expected the model_type of a family that is read, found ",
            type.type_name());
    require(type.get<std::string>() != "whisper", where,
            ": this is a Whisper model, expected a language model; use whisper-transcribe");
    const Family& family = family_of(type.get<std::string>(), where);
    nlohmann::json settings = *model;
    for (const char* key : {"tie_word_embeddings", "eos_token_id"})
        if (!settings.contains(key) && root.contains(key)) settings[key] = root[key];
    return family.read(JsonConfig(std::move(settings), where));
}

DecoderConfig load_config(const std::filesystem::path& directory) {
    const std::filesystem::path path = directory / "config.json";
    DecoderConfig config = parse_config(read_file(path, size_t{1} << 20), path.string());
    const std::filesystem::path generation = directory / "generation_config.json";
    if (config.family == "gpt2" || !std::filesystem::exists(generation)) return config;
    const nlohmann::json root =
        parse_json(read_file(generation, size_t{1} << 20), generation.string());
    require(root.is_object(), generation.string(), ": expected a JSON object");
    const auto ids = token_ids(root.value("eos_token_id", nlohmann::json()), "eos_token_id",
                               config.n_vocab, generation.string());
    for (const int32_t id : ids)
        if (std::find(config.eos_token_ids.begin(), config.eos_token_ids.end(), id) ==
            config.eos_token_ids.end())
            config.eos_token_ids.push_back(id);
    return config;
}

}  // namespace hark::gpt
