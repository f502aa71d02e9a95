#include "hub/gguf_settings.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "core/ranges.h"
#include "gpt/families/gguf_types.h"
#include "gpt/families/json_config.h"
#include "gpt/families/model_folder.h"
#include "hub/gpt_oss_folder.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;
using gpt::DecoderConfig;

constexpr int64_t kQuantizationVersion = 2;  // general.quantization_version
constexpr int64_t kGemma3Period = 6;         // of layers, the last without a window
constexpr int64_t kSoftmax = 1, kSigmoid = 2;  // expert_gating_func
constexpr float kSwigluLimit = 7;              // of gpt-oss in GGUF

// The layers' window; 0: none has one.
int64_t window_of(const DecoderConfig& config) {
    int64_t window = 0;
    for (const gpt::LayerConfig& layer : config.layers)
        if (layer.window < config.n_positions) window = std::max(window, layer.window);
    return window;
}

// The layers that have a window in a GGUF file of the family, if it has one.
bool slides_in_gguf(const DecoderConfig& config, int64_t layer) {
    if (config.family == "gemma2" || config.family == kGptOss) return layer % 2 == 0;
    if (config.family == "gemma3_text") return (layer + 1) % kGemma3Period != 0;
    return config.family == "phi3";
}

bool is_gemma(const DecoderConfig& config) { return config.norm_offset != 0; }

void check_experts(const DecoderConfig& config, const std::string& where) {
    if (config.experts.count == 0 || config.is_latent()) return;
    for (int64_t i = 0; i < config.n_layer; ++i)
        require(config.layers[static_cast<size_t>(i)].has_experts, where,
                ": GGUF cannot say that layer ", i, " has no experts in this family");
    require(config.experts.normalized, where,
            ": GGUF cannot say that the weights of a token's experts have another sum than 1");
    const bool is_gpt_oss = config.family == kGptOss;
    require(config.qkv_bias == is_gpt_oss, where, ": GGUF has no place for biases in this family");
    require(!is_gpt_oss || config.experts.swiglu_limit == kSwigluLimit, where,
            ": GGUF has no place for a swiglu_limit other than ", kSwigluLimit);
}

void check_rope(const gpt::RopeSettings& rope, const DecoderConfig& of, const std::string& where) {
    constexpr const char* kTypes[] = {"default", "linear", "llama3", "yarn"};
    const bool is_yarn = rope.type == "yarn";
    require(contains(kTypes, rope.type) && (!is_yarn || !is_gemma(of)), where,
            ": the rope's scaling ", rope.type, " is not written as GGUF, only default, linear, ",
            "llama3 and, of other families than Gemma, yarn");
    if (!is_yarn) return;
    require(rope.attention_factor == 0, where, ": GGUF has no place for yarn's attention_factor");
    require(rope.mscale == rope.mscale_all_dim && (rope.mscale == 0 || of.is_latent()), where,
            ": GGUF has no place for yarn's mscale ", rope.mscale, " and mscale_all_dim ",
            rope.mscale_all_dim, of.is_latent() ? ", only for equal ones" : " in this family");
    // Readers round the borders of its ramp as transformers does, but not those of gpt-oss.
    require(rope.truncate == (of.family != kGptOss), where,
            ": GGUF has no place for yarn's 'truncate': expected ",
            rope.truncate ? "false" : "true", " in this family");
}

void add_rope_scaling(GgufOutput& out, const DecoderConfig& c, const gpt::RopeSettings& rope,
                      const std::string& prefix) {
    if (rope.type != "linear" && rope.type != "yarn") return;
    out.text(prefix + "type", rope.type);
    out.real(prefix + "factor", rope.factor);
    if (rope.type == "linear") return;
    out.count(prefix + "original_context_length",
              rope.original_length > 0 ? rope.original_length : c.n_positions);
    out.real(prefix + "yarn_beta_fast", rope.beta_fast);
    out.real(prefix + "yarn_beta_slow", rope.beta_slow);
    if (rope.mscale_all_dim != 0)
        out.real(prefix + "yarn_log_multiplier", 0.1 * rope.mscale_all_dim);
}

void add_experts(GgufOutput& out, const DecoderConfig& c, const std::string& prefix) {
    const gpt::ExpertConfig& experts = c.experts;
    if (experts.count == 0) return;
    out.count(prefix + "expert_count", experts.count);
    out.count(prefix + "expert_used_count", experts.per_token);
    // Mixtral's have the width of Llama's MLP.
    if (c.family != "mixtral") out.count(prefix + "expert_feed_forward_length", experts.n_inner);
    if (!c.is_latent()) return;
    out.count(prefix + "expert_shared_count", experts.n_shared_inner / experts.n_inner);
    out.count(prefix + "expert_gating_func", experts.sigmoid ? kSigmoid : kSoftmax);
    out.flag(prefix + "expert_weights_norm", experts.normalized);
    out.real(prefix + "expert_weights_scale", experts.scale);
    if (experts.groups == 1) return;
    out.count(prefix + "expert_group_count", experts.groups);
    out.count(prefix + "expert_group_used_count", experts.kept_groups);
}

// The lengths of the absorbed form's heads, and of those that it stands for.
void add_attention(GgufOutput& out, const DecoderConfig& c, const std::string& prefix) {
    const gpt::LatentConfig& of = c.latent;
    out.count(prefix + "attention.head_count", c.n_head);
    out.count(prefix + "attention.head_count_kv", c.n_kv_head);
    out.count(prefix + "attention.key_length", c.head_dim);
    out.count(prefix + "attention.value_length", c.is_latent() ? of.channels : c.head_dim);
    if (!c.is_latent()) return;
    out.count(prefix + "attention.key_length_mla", of.plain + of.rotary);
    out.count(prefix + "attention.value_length_mla", of.value);
    out.count(prefix + "attention.kv_lora_rank", of.channels);
    if (of.query_rank > 0) out.count(prefix + "attention.q_lora_rank", of.query_rank);
    const auto dense =
        std::find_if(c.layers.begin(), c.layers.end(),
                     [](const gpt::LayerConfig& layer) { return layer.has_experts; });
    out.count(prefix + "leading_dense_block_count", dense - c.layers.begin());
}

}  // namespace

const gpt::Family& family_in_gguf(const DecoderConfig& config, const std::string& where) {
    std::string family = config.family;
    if (family == "mistral" || family == "mixtral") family = "llama";
    if (family == "deepseek_v3") family = "deepseek_v2";
    return gpt::family_of(family, where);
}

double default_theta_in_gguf(const DecoderConfig& of, const std::string& where) {
    return of.family == "smollm3" ? gpt::kRopeTheta : gpt::family_of(of.family, where).rope_theta;
}

void check_written(const DecoderConfig& config, const std::string& where) {
    constexpr const char* kFamilies[] = {"llama",       "mistral",     "qwen2",      "qwen3",
                                         "olmo2",       "granite",     "smollm3",    "gemma2",
                                         "gemma3_text", "phi3",        "mixtral",    "qwen3_moe",
                                         "gpt_oss",     "deepseek_v2", "deepseek_v3"};
    require(contains(kFamilies, config.family), where, ": expected a model of the family ",
            joined(kFamilies), " to write as GGUF, found ", config.family,
            "; give --to safetensors and a new folder");
    const int64_t window = window_of(config);
    for (int64_t i = 0; i < config.n_layer; ++i) {
        const int64_t own = config.layers[static_cast<size_t>(i)].window;
        const bool slides = 0 < own && own < config.n_positions;
        const bool expected = window > 0 && slides_in_gguf(config, i);
        require(slides == expected && (!slides || own == window), where,
                ": GGUF cannot say that layer ", i, slides ? " has a window" : " has no window",
                " in this family");
    }
    require(!is_gemma(config) || config.attention_scale == gpt::gemma_gguf_scale(config), where,
            ": GGUF has no place for this query_pre_attn_scalar");
    for (int64_t i = 0; i < config.n_layer; ++i) {
        const bool turns = config.family != "smollm3" || (i + 1) % gpt::kSmolLm3Interval != 0;
        require((config.layers[static_cast<size_t>(i)].rope >= 0) == turns, where,
                ": GGUF cannot say that layer ", i, turns ? " has no" : " has", " positions");
    }
    const Activation activation = is_gemma(config) ? Activation::gelu_tanh : Activation::silu;
    require(config.activation == activation, where, ": GGUF has no place for this hidden_act");
    check_experts(config, where);
}

GgufRopes gguf_ropes(const fs::path& folder, const DecoderConfig& of) {
    const fs::path path = folder / gpt::kConfigFile;
    const std::string where = path.string();
    const nlohmann::json root = parse_json(read_file(path, size_t{1} << 20), where);
    const auto text = root.find("text_config");  // of a model of several kinds of input
    const gpt::JsonConfig config(text != root.end() && text->is_object() ? *text : root, where);
    GgufRopes ropes{config.rope(gpt::family_of(of.family, where).rope_theta, "full_attention")};
    check_rope(ropes.all, of, where);
    if (of.family == "gemma3_text") ropes.window_theta = gpt::gemma3_window_rope(config).theta;
    return ropes;
}

std::vector<float> rope_divisors(const DecoderConfig& config, const gpt::RopeSettings& rope) {
    std::vector<float> divisors;
    if (rope.type != "llama3") return divisors;
    const std::vector<float>& scaled = config.ropes.front().frequencies;
    for (size_t i = 0; i < scaled.size(); ++i) {
        const double plain =
            std::pow(rope.theta, -static_cast<double>(i) / static_cast<double>(scaled.size()));
        divisors.push_back(static_cast<float>(plain / scaled[i]));
    }
    return divisors;
}

void add_settings(GgufOutput& out, const DecoderConfig& c, const GgufRopes& ropes,
                  const std::string& name, const std::string& type) {
    const gpt::RopeSettings& rope = ropes.all;
    const std::string family = family_in_gguf(c, name).gguf, prefix = family + ".";
    out.text("general.architecture", family);
    out.text("general.type", "model");
    out.text("general.name", name);
    out.count("general.file_type", gpt::gguf_file_type(type));
    out.count("general.quantization_version", kQuantizationVersion);
    out.count(prefix + "context_length", c.n_positions);
    out.count(prefix + "embedding_length", c.n_embd);
    out.count(prefix + "block_count", c.n_layer);
    out.count(prefix + "feed_forward_length", c.n_inner);
    add_attention(out, c, prefix);
    out.real(prefix + "attention.layer_norm_rms_epsilon", c.norm_eps);
    out.count(prefix + "vocab_size", c.n_vocab);
    out.count(prefix + "rope.dimension_count",
              2 * static_cast<int64_t>(c.ropes.front().frequencies.size()));
    out.real(prefix + "rope.freq_base", rope.theta);
    if (c.family == "granite") {
        out.real(prefix + "embedding_scale", c.embedding_scale);
        out.real(prefix + "attention.scale", c.attention_scale);
        out.real(prefix + "residual_scale", c.residual_scale);
        out.real(prefix + "logit_scale", 1 / c.logit_scale);  // they divide by it
    }
    add_experts(out, c, prefix);
    if (window_of(c) > 0 || c.family == kGptOss)
        out.count(prefix + "attention.sliding_window",
                  window_of(c) > 0 ? window_of(c) : c.n_positions);
    if (c.attention_soft_cap > 0) out.real(prefix + "attn_logit_softcapping", c.attention_soft_cap);
    if (c.logit_soft_cap > 0) out.real(prefix + "final_logit_softcapping", c.logit_soft_cap);
    if (ropes.window_theta > 0) out.real(prefix + "rope.freq_base_swa", ropes.window_theta);
    add_rope_scaling(out, c, rope, prefix + "rope.scaling.");
}

}  // namespace hark::models
