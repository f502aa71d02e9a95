// Sources: transformers models/*/configuration_*.py; modeling_rope_utils.py for rope_scaling.
#include "hub/hugging_face_settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "core/ranges.h"
#include "core/shortest.h"
#include "gpt/families/family.h"
#include "gpt/families/gguf_config.h"
#include "gpt/families/model_folder.h"
#include "gpt/families/rope_table.h"
#include "hub/gguf_settings.h"
#include "hub/gpt_oss_folder.h"

namespace hark::models {
namespace {

using gpt::DecoderConfig;
using nlohmann::ordered_json;

struct WrittenFamily {
    const char* model_type;
    const char* architecture;  // transformers' class
};
constexpr WrittenFamily kFamilies[] = {
    {"llama", "LlamaForCausalLM"},           {"qwen2", "Qwen2ForCausalLM"},
    {"qwen3", "Qwen3ForCausalLM"},           {"gemma2", "Gemma2ForCausalLM"},
    {"gemma3_text", "Gemma3ForCausalLM"},    {"phi3", "Phi3ForCausalLM"},
    {"smollm3", "SmolLM3ForCausalLM"},       {"olmo2", "Olmo2ForCausalLM"},
    {"olmo3", "Olmo3ForCausalLM"},           {"granite", "GraniteForCausalLM"},
    {"mixtral", "MixtralForCausalLM"},       {"qwen3_moe", "Qwen3MoeForCausalLM"},
    {kGptOss, "GptOssForCausalLM"},          {"deepseek_v2", "DeepseekV2ForCausalLM"},
    {"deepseek_v3", "DeepseekV3ForCausalLM"}};

constexpr double kNear = 1e-5;  // of two tables of frequencies, one of them from divisors in f32
constexpr int64_t kLongestOriginal = 1 << 20;  // tokens

const char* architecture_of(const DecoderConfig& config, const std::string& where) {
    for (const WrittenFamily& family : kFamilies)
        if (config.family == family.model_type) return family.architecture;
    fail(where, ": expected a model of the family gpt2, ",
         joined(kFamilies, ", ", [](const WrittenFamily& family) { return family.model_type; }),
         " to write as a folder, found ", config.family);
}

// The number of f32 in its fewest digits: 1e-06, not 9.99999997e-07.
double number(double value) {
    return std::strtod(shortest(static_cast<float>(value)).c_str(), nullptr);
}

bool is_near(const std::vector<float>& a, const std::vector<float>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](float x, float y) { return std::abs(x - y) <= kNear * std::abs(y); });
}

bool is_near(const gpt::RopeTable& a, const gpt::RopeTable& b) {
    return is_near(a.frequencies, b.frequencies) &&
           is_near(a.long_frequencies, b.long_frequencies) &&
           std::abs(a.scale - b.scale) <= kNear * b.scale &&
           (a.long_frequencies.empty() || a.original_length == b.original_length);
}

// GGUF has the result of llama3's scaling, a divisor per frequency. All published models have the
// factors 1 and 4 of low and high frequencies, and an original length that is a power of two.
gpt::RopeSettings llama3_rope(const gpt::RopeSettings& divided, const DecoderConfig& of,
                              const std::string& where) {
    const auto rotary = 2 * std::ssize(divided.divisors);
    const gpt::RopeTable wanted = gpt::rope_table(divided, rotary, of.n_positions, where);
    gpt::RopeSettings rope = divided;
    rope.type = "llama3";
    const double most = *std::max_element(divided.divisors.begin(), divided.divisors.end());
    rope.factor = std::round(1000 * most) / 1000;  // divisors are quotients in f32
    rope.divisors.clear();
    for (rope.original_length = 1; rope.original_length <= kLongestOriginal;
         rope.original_length *= 2)
        if (is_near(gpt::rope_table(rope, rotary, of.n_positions, where), wanted)) return rope;
    fail(where,
         ": config.json cannot say the divisors of frequencies in rope_freqs.weight: "
         "expected those of llama3's scaling");
}

ordered_json numbers(const std::vector<double>& values) {
    ordered_json list = ordered_json::array();
    for (const double value : values) list.push_back(number(value));
    return list;
}

void add_rope(ordered_json& root, const gpt::RopeSettings& in_file, const DecoderConfig& c,
              const std::string& where) {
    const bool is_divided = !in_file.divisors.empty();
    const gpt::RopeSettings rope = is_divided ? llama3_rope(in_file, c, where) : in_file;
    root["rope_theta"] = number(rope.theta);
    if (rope.type == "default") return;
    if (rope.type == "longrope") {
        root["original_max_position_embeddings"] = rope.original_length;
        root["rope_scaling"] = {{"type", rope.type},
                                {"short_factor", numbers(rope.short_factor)},
                                {"long_factor", numbers(rope.long_factor)}};
        return;
    }
    ordered_json& scaling = root["rope_scaling"];
    scaling = {{"rope_type", rope.type}, {"factor", number(rope.factor)}};
    if (rope.original_length > 0)
        scaling["original_max_position_embeddings"] = rope.original_length;
    if (rope.type == "llama3") {
        scaling["low_freq_factor"] = rope.low_freq_factor;
        scaling["high_freq_factor"] = rope.high_freq_factor;
    }
    if (rope.type != "yarn") return;
    scaling["beta_fast"] = number(rope.beta_fast);
    scaling["beta_slow"] = number(rope.beta_slow);
    if (!rope.truncate) scaling["truncate"] = false;
    if (rope.attention_factor > 0) scaling["attention_factor"] = number(rope.attention_factor);
    if (rope.mscale_all_dim > 0)
        scaling["mscale"] = scaling["mscale_all_dim"] = number(rope.mscale_all_dim);
}

void add_layers(ordered_json& root, const DecoderConfig& c) {
    constexpr std::string_view kTyped[] = {"gemma2", "gemma3_text", "olmo3", kGptOss};
    const bool has_types = contains(kTyped, c.family);
    ordered_json types = ordered_json::array(), ropes = ordered_json::array();
    for (const gpt::LayerConfig& layer : c.layers) {
        types.push_back(layer.window > 0 ? "sliding_attention" : "full_attention");
        ropes.push_back(layer.rope >= 0 ? 1 : 0);
        if (layer.window > 0) root["sliding_window"] = layer.window;
    }
    if (has_types) root["layer_types"] = types;
    if (c.family == "smollm3") root["no_rope_layers"] = ropes;
}

void add_latent(ordered_json& root, const DecoderConfig& c) {
    const gpt::LatentConfig& of = c.latent;
    root["num_key_value_heads"] = c.n_head;
    root["head_dim"] = root["qk_rope_head_dim"] = of.rotary;
    root["q_lora_rank"] = of.query_rank > 0 ? ordered_json(of.query_rank) : ordered_json();
    root["kv_lora_rank"] = of.channels;
    root["qk_nope_head_dim"] = of.plain;
    root["v_head_dim"] = of.value;
    const auto first = std::find_if(c.layers.begin(), c.layers.end(),
                                    [](const auto& layer) { return layer.has_experts; });
    root["first_k_dense_replace"] = first - c.layers.begin();
    const gpt::ExpertConfig& experts = c.experts;
    if (experts.count == 0) return;
    root["n_routed_experts"] = experts.count;
    root["num_experts_per_tok"] = experts.per_token;
    root["moe_intermediate_size"] = experts.n_inner;
    root["n_shared_experts"] = experts.n_shared_inner / experts.n_inner;
    root["routed_scaling_factor"] = number(experts.scale);
    root["norm_topk_prob"] = experts.normalized;
    root["n_group"] = experts.groups;
    root["topk_group"] = experts.kept_groups;
    root["scoring_func"] = experts.sigmoid ? "sigmoid" : "softmax";
    root["topk_method"] = experts.sigmoid       ? "noaux_tc"
                          : experts.groups == 1 ? "greedy"
                                                : "group_limited_greedy";
}

void add_experts(ordered_json& root, const DecoderConfig& c) {
    if (c.experts.count == 0 || c.is_latent()) return;
    root["num_experts_per_tok"] = c.experts.per_token;
    const bool local = c.family == "mixtral" || c.family == kGptOss;
    root[local ? "num_local_experts" : "num_experts"] = c.experts.count;
    if (c.family == kGptOss) {
        root["intermediate_size"] = c.experts.n_inner;
        root["swiglu_limit"] = number(c.experts.swiglu_limit);
    }
    if (local) return;
    root["moe_intermediate_size"] = c.experts.n_inner;
    root["norm_topk_prob"] = c.experts.normalized;
}

void add_family(ordered_json& root, const gpt::GgufConfig& in, const DecoderConfig& c) {
    if (c.family == "granite") {
        root["embedding_multiplier"] = number(c.embedding_scale);
        root["attention_multiplier"] = number(c.attention_scale);
        root["residual_multiplier"] = number(c.residual_scale);
        root["logits_scaling"] = number(in.number_or({nullptr, "logit_scale"}, 1));
    }
    if (c.family == "phi3")
        root["partial_rotary_factor"] = 2 *
                                        static_cast<double>(c.ropes.front().frequencies.size()) /
                                        static_cast<double>(c.head_dim);
    if (c.family != "gemma2" && c.family != "gemma3_text") return;
    root["hidden_activation"] = "gelu_pytorch_tanh";
    root["query_pre_attn_scalar"] = std::lround(1 / (c.attention_scale * c.attention_scale));
    for (const auto& [key, cap] : {std::pair{"attn_logit_softcapping", c.attention_soft_cap},
                                   {"final_logit_softcapping", c.logit_soft_cap}})
        root[key] = cap > 0 ? ordered_json(number(cap)) : ordered_json();
    if (c.family == "gemma3_text")
        root["rope_local_base_freq"] = number(gpt::gemma3_window_rope(in).theta);
}

// bos, eos and padding; null if there is none: transformers' defaults differ by family.
void add_ids(ordered_json& root, const std::vector<int32_t>& eos, const hark::Tokenizer& tokens) {
    const auto id_or_null = [](std::optional<int32_t> id) {
        return id ? ordered_json(*id) : ordered_json();
    };
    root["bos_token_id"] = id_or_null(tokens.special_ids().bos);
    std::vector<int32_t> ends = eos;
    for (const int32_t id : tokens.special_ids().ends)
        if (!contains(ends, id)) ends.push_back(id);
    root["eos_token_id"] = ends.size() == 1 ? ordered_json(ends.front()) : ordered_json(ends);
    if (ends.empty()) root["eos_token_id"] = nullptr;
    root["pad_token_id"] = id_or_null(tokens.special_ids().padding);
}

ordered_json settings_of(const GgufFile& file, const DecoderConfig& c, Dtype dtype) {
    const gpt::GgufConfig in(file);
    ordered_json root = {{"architectures", {architecture_of(c, file.name())}},
                         {"model_type", c.family},
                         {"vocab_size", c.n_vocab},
                         {"max_position_embeddings", c.n_positions},
                         {"hidden_size", c.n_embd},
                         {"intermediate_size", c.n_inner},
                         {"num_hidden_layers", c.n_layer},
                         {"num_attention_heads", c.n_head},
                         {"num_key_value_heads", c.n_kv_head},
                         {"head_dim", c.head_dim},
                         {"hidden_act", "silu"},
                         {"rms_norm_eps", number(c.norm_eps)},
                         {"attention_bias", c.attn_out_bias},
                         {"tie_word_embeddings", c.tie_word_embeddings}};
    gpt::RopeSettings rope = in.rope(default_theta_in_gguf(c, file.name()), "full_attention");
    if (c.is_latent()) {
        rope.mscale_all_dim = 10 * in.number_or({nullptr, "rope.scaling.yarn_log_multiplier"}, 0);
        add_latent(root, c);
    }
    if (c.family == kGptOss) rope.truncate = false;  // GGUF has no key for it
    add_rope(root, rope, c, file.name());
    add_layers(root, c);
    add_experts(root, c);
    add_family(root, in, c);
    root["torch_dtype"] = gpt::torch_name(dtype);
    return root;
}

// Whether config.json, read as `b`, says what the file says.
void check_equal(const DecoderConfig& a, const DecoderConfig& b, const std::string& where) {
    const auto check = [&](bool equal, const char* what) {
        require(equal, where, ": config.json cannot say ", what, " in the family ", a.family);
    };
    const auto near = [](float x, float y) { return std::abs(x - y) <= kNear * std::abs(y); };
    check(a.qkv_bias == b.qkv_bias && a.attn_out_bias == b.attn_out_bias,
          "which products of "
          "attention have a bias, as the file has them,");
    check(near(b.attention_scale, a.attention_scale), "the file's scale of attention");
    check(near(b.logit_scale, a.logit_scale) && near(b.residual_scale, a.residual_scale) &&
              near(b.embedding_scale, a.embedding_scale) && near(b.norm_eps, a.norm_eps),
          "one of the file's factors");
    check(a.ropes.size() == b.ropes.size() &&
              std::equal(a.ropes.begin(), a.ropes.end(), b.ropes.begin(),
                         [](const auto& x, const auto& y) { return is_near(y, x); }),
          "the file's rope");
    const auto window = [&](const gpt::LayerConfig& layer) {
        return layer.window < a.n_positions ? layer.window : 0;
    };
    for (size_t i = 0; i < a.layers.size(); ++i)
        check(window(a.layers[i]) == window(b.layers[i]) && a.layers[i].rope == b.layers[i].rope &&
                  a.layers[i].has_experts == b.layers[i].has_experts,
              "the windows, positions or experts of the file's layers");
}

}  // namespace

DecoderConfig write_settings(const GgufFile& file, gpt::ModelFile& model, Dtype dtype,
                             const std::filesystem::path& directory) {
    const DecoderConfig& config = model.config();
    ordered_json root = settings_of(file, config, dtype), generation;
    if (has_mxfp4_experts(model)) root["quantization_config"] = gpt_oss_quantization();
    const auto tokens = model.tokenizer();
    add_ids(root, config.eos_token_ids, *tokens);
    add_ids(generation, config.eos_token_ids, *tokens);
    for (const auto& [name, value] : model.sampling_defaults()) {
        if (name.starts_with("mirostat") || name.starts_with("xtc")) continue;  // llama.cpp's own
        generation["do_sample"] = true;
        generation[name] =
            name == "top_k" ? ordered_json(std::llround(value)) : ordered_json(number(value));
    }
    const std::string text = root.dump(2) + "\n";
    const DecoderConfig written = gpt::parse_config(text, (directory / gpt::kConfigFile).string());
    check_equal(config, written, file.name());
    write_file(directory / gpt::kConfigFile, text);
    write_file(directory / "generation_config.json", generation.dump(2) + "\n");
    if (file.has(concat(file.text("general.architecture"), ".pooling_type")))
        gpt::write_embedding_files(directory, model.embedding_settings().pooling, config.n_embd);
    return written;
}

}  // namespace hark::models
