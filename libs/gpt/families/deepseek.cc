// DeepSeek-V2 and V3: latent attention, and mixtures of experts with groups, shared experts and a
// few layers without any. Reference: transformers models/deepseek_v2, deepseek_v3; where V2's class
// there and the model's own code differ, the latter (docs/models/families.md).
#include <cmath>

#include "core/error.h"
#include "gpt/families/family.h"
#include "gpt/families/rope_table.h"

namespace hark::gpt {
namespace {

constexpr int64_t kSigmoid = 2, kSoftmax = 1;  // GGUF's expert_gating_func

// Refuses a setting of config.json that is there and has another value than the one that is read.
void expect_deepseek(const ConfigReader& in, const char* key, bool value) {
    require(in.boolean_or({key, nullptr}, value) == value, in.where(), ": '", key, "': expected ",
            value ? "true" : "false", ", the only supported value");
}
void expect_deepseek(const ConfigReader& in, const char* key, const char* value) {
    if (!in.has({key, nullptr})) return;
    const std::string found = in.text({key, nullptr});
    require(found == value, in.where(), ": '", key, "': expected ", value, ", found ", found);
}

void check_deepseek(const ConfigReader& in, const DecoderConfig& c, bool is_v3) {
    expect_deepseek(in, "attention_bias", false);
    expect_deepseek(in, "rope_interleave", true);
    expect_deepseek(in, "scoring_func", is_v3 ? "sigmoid" : "softmax");
    if (is_v3)
        expect_deepseek(in, "topk_method", "noaux_tc");
    else  // Its own code and transformers disagree on what follows.
        expect_deepseek(in, "norm_topk_prob", false);
    in.integer_or({"moe_layer_freq", nullptr}, 1, 1, 1);
    require(in.is_gguf() || c.n_kv_head == c.n_head, in.where(),
            ": 'num_key_value_heads': expected ", c.n_head, ", as many as heads, found ",
            c.n_kv_head);
    for (const char* key : {"nextn_predict_layers", "attention.temperature_scale"})
        require(!in.has({nullptr, key}) || in.number({nullptr, key}) == 0, in.where(), ": key '",
                key, "': expected 0 or none, the only supported values");
}

void set_latent(DecoderConfig& c, const ConfigReader& in) {
    constexpr int64_t kMost = 1 << 12;
    LatentConfig& of = c.latent;
    of.channels = in.size({"kv_lora_rank", "attention.kv_lora_rank"}, kMost);
    of.query_rank = in.size_or({"q_lora_rank", "attention.q_lora_rank"}, 1 << 16, 0);
    of.rotary = in.size({"qk_rope_head_dim", "rope.dimension_count"}, kMost);
    if (in.is_gguf()) {
        // Files since 2025 have the sizes of the absorbed form under the keys of older files.
        const Key key{nullptr, "attention.key_length_mla"};
        of.by_head = in.has(key);
        // Every head has tensors of its own: DeepSeek-V3 has 7,808 heads.
        require(!of.by_head || c.n_layer * c.n_head <= 1 << 16, in.where(), ": expected at most ",
                1 << 16, " heads in all layers, found ", c.n_layer, " layers of ", c.n_head);
        const int64_t query =
            in.size(of.by_head ? key : Key{nullptr, "attention.key_length"}, kMost);
        require(query > of.rotary, in.where(), ": expected heads of more than ", of.rotary,
                " channels, found ", query);
        of.plain = query - of.rotary;
        of.value = in.size(
            {nullptr, of.by_head ? "attention.value_length_mla" : "attention.value_length"}, kMost);
    } else {
        of.plain = in.size({"qk_nope_head_dim", nullptr}, kMost);
        of.value = in.size({"v_head_dim", nullptr}, kMost);
    }
    c.n_kv_head = 1;
    c.head_dim = of.channels + of.rotary;

    RopeSettings rope = in.rope(10000);
    // 0.1 * mscale_all_dim; mscale is the same in all models that have it.
    if (in.is_gguf())
        rope.mscale = rope.mscale_all_dim =
            10 * in.number_or({nullptr, "rope.scaling.yarn_log_multiplier"}, 0);
    c.ropes = {rope_table(rope, of.rotary, c.n_positions, in.where())};
    const double mscale = rope.type == "yarn" ? yarn_scale(rope.factor, rope.mscale_all_dim) : 1;
    c.attention_scale =
        static_cast<float>(mscale * mscale / std::sqrt(static_cast<double>(of.plain + of.rotary)));
}

void set_groups(ExpertConfig& e, const ConfigReader& in) {
    const Key groups{"n_group", "expert_group_count"};
    e.groups = in.size_or(groups, e.count, 1);
    e.kept_groups = in.size_or({"topk_group", "expert_group_used_count"}, e.groups, 1);
    const int64_t size = e.count / e.groups;
    require(e.count % e.groups == 0 && (size > 1 || e.groups == 1 || !e.sigmoid), in.where(),
            ": expected groups of equally many of the ", e.count, " experts, found ", e.groups);
    require(e.per_token <= size * e.kept_groups, in.where(), ": expected ", e.kept_groups,
            " groups of ", size, " experts to have the ", e.per_token, " of a token");
}

void set_deepseek_experts(DecoderConfig& c, const ConfigReader& in, bool is_v3) {
    if (in.integer_or({"n_routed_experts", "expert_count"}, 0, 1024, 0) == 0) return;
    set_experts(c, in, "n_routed_experts", "moe_intermediate_size");
    const int64_t dense =
        in.integer_or({"first_k_dense_replace", "leading_dense_block_count"}, 0, 1024, 0);
    for (int64_t i = 0; i < std::min(dense, c.n_layer); ++i)
        c.layers[static_cast<size_t>(i)].has_experts = false;
    ExpertConfig& e = c.experts;
    e.sigmoid = e.corrected = is_v3;
    e.normalized = in.boolean_or({"norm_topk_prob", "expert_weights_norm"}, false);
    require(is_v3 || !e.normalized, in.where(),
            ": key 'expert_weights_norm': expected false, the only supported value with softmax");
    const double scale = in.number_or({"routed_scaling_factor", "expert_weights_scale"}, 1);
    require(scale > 0 && scale <= 1e6, in.where(),
            ": expected a scale of the experts above 0 and at most 1e6, found ", scale);
    e.scale = static_cast<float>(scale);
    e.n_shared_inner =
        e.n_inner * in.integer_or({"n_shared_experts", "expert_shared_count"}, 0, 1024, 0);
    const Key method{"topk_method", nullptr};
    const bool greedy = !is_v3 && !in.is_gguf() && (!in.has(method) || in.text(method) == "greedy");
    if (greedy) return;
    if (!is_v3) expect_deepseek(in, "topk_method", "group_limited_greedy");
    set_groups(e, in);
}

DecoderConfig read_deepseek(const ConfigReader& in, bool is_v3) {
    const Key rotary{"qk_rope_head_dim", "rope.dimension_count"};
    DecoderConfig c = read_llama_like(in, is_v3 ? "deepseek_v3" : "deepseek_v2",
                                      {.head_dim = in.size(rotary, 1 << 12)});
    check_deepseek(in, c, is_v3);
    set_latent(c, in);
    set_deepseek_experts(c, in, is_v3);
    return c;
}

DecoderConfig read_deepseek_v3(const ConfigReader& in) {
    // Whose defaults in transformers are not those of V2, and which its files all have.
    for (const char* key : {"n_group", "topk_group", "norm_topk_prob", "routed_scaling_factor",
                            "first_k_dense_replace", "n_shared_experts"})
        require(in.mentions({key, nullptr}), in.where(), ": expected '", key, "', found none");
    return read_deepseek(in, true);
}

// GGUF has one architecture for both.
DecoderConfig read_deepseek_v2(const ConfigReader& in) {
    const Key gate{nullptr, "expert_gating_func"};
    const int64_t function = in.is_gguf() ? in.integer_or(gate, kSoftmax, kSigmoid, kSoftmax) : 0;
    return read_deepseek(in, function == kSigmoid);
}

}  // namespace

extern const Family kDeepseekV2, kDeepseekV3;
const Family kDeepseekV2 = {
    .model_type = "deepseek_v2", .gguf = "deepseek2", .read = read_deepseek_v2};
const Family kDeepseekV3 = {.model_type = "deepseek_v3", .gguf = nullptr, .read = read_deepseek_v3};

}  // namespace hark::gpt
