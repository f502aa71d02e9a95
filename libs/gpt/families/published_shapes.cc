#include "gpt/families/published_shapes.h"

#include <algorithm>

namespace hark::gpt {
namespace {

constexpr PublishedShape kShapes[] = {
    {"gpt2-124m", R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
        "n_embd": 768, "n_layer": 12, "n_head": 12})"},
    {"gpt2-355m", R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
        "n_embd": 1024, "n_layer": 24, "n_head": 16})"},
    {"gpt2-774m", R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
        "n_embd": 1280, "n_layer": 36, "n_head": 20})"},
    {"gpt2-1558m", R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
        "n_embd": 1600, "n_layer": 48, "n_head": 25})"},
    {"llama-160m", R"({"model_type": "llama", "vocab_size": 32000,
        "max_position_embeddings": 2048, "hidden_size": 768, "num_hidden_layers": 12,
        "num_attention_heads": 12, "intermediate_size": 3072, "rms_norm_eps": 1e-6,
        "hidden_act": "silu", "rope_theta": 10000.0, "tie_word_embeddings": false})"},
    {"qwen2.5-0.5b", R"({"model_type": "qwen2", "vocab_size": 151936,
        "max_position_embeddings": 32768, "hidden_size": 896, "num_hidden_layers": 24,
        "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864,
        "rms_norm_eps": 1e-6, "hidden_act": "silu", "rope_theta": 1000000.0,
        "tie_word_embeddings": true})"},
    {"llama-3.2-1b", R"({"model_type": "llama", "vocab_size": 128256,
        "max_position_embeddings": 131072, "hidden_size": 2048, "num_hidden_layers": 16,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
        "intermediate_size": 8192, "rms_norm_eps": 1e-5, "hidden_act": "silu",
        "rope_theta": 500000.0, "tie_word_embeddings": true})"},
    {"llama-3.1-8b", R"({"model_type": "llama", "vocab_size": 128256,
        "max_position_embeddings": 131072, "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
        "rms_norm_eps": 1e-5, "hidden_act": "silu", "rope_theta": 500000.0,
        "tie_word_embeddings": false})"},
    {"gpt-oss-20b", R"({"model_type": "gpt_oss", "vocab_size": 201088,
        "max_position_embeddings": 131072, "hidden_size": 2880, "num_hidden_layers": 24,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
        "intermediate_size": 2880, "num_local_experts": 32, "num_experts_per_tok": 4,
        "sliding_window": 128, "rms_norm_eps": 1e-5, "rope_theta": 150000.0,
        "tie_word_embeddings": false})"},
    {"qwen3-30b-a3b", R"({"model_type": "qwen3_moe", "vocab_size": 151936,
        "max_position_embeddings": 40960, "hidden_size": 2048, "num_hidden_layers": 48,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
        "moe_intermediate_size": 768, "intermediate_size": 6144, "num_experts": 128,
        "num_experts_per_tok": 8, "norm_topk_prob": true, "rms_norm_eps": 1e-6,
        "hidden_act": "silu", "rope_theta": 1000000.0, "tie_word_embeddings": false})"},
    {"deepseek-v2-lite", R"({"model_type": "deepseek_v2", "vocab_size": 102400,
        "max_position_embeddings": 163840, "hidden_size": 2048, "num_hidden_layers": 27,
        "num_attention_heads": 16, "num_key_value_heads": 16, "q_lora_rank": null,
        "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 64,
        "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
        "n_group": 1, "topk_group": 1, "topk_method": "greedy", "norm_topk_prob": false,
        "routed_scaling_factor": 1.0, "rms_norm_eps": 1e-6, "hidden_act": "silu",
        "rope_theta": 10000.0, "tie_word_embeddings": false})"},
};

}  // namespace

std::span<const PublishedShape> published_shapes() { return kShapes; }

const PublishedShape* find_shape(std::string_view name) {
    const auto* shape = std::find_if(std::begin(kShapes), std::end(kShapes),
                                     [&](const PublishedShape& one) { return name == one.name; });
    return shape == std::end(kShapes) ? nullptr : shape;
}

}  // namespace hark::gpt
