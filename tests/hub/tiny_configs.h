// config.json of tiny models, one for each family that becomes a GGUF file, and of some that
// cannot.
#pragma once

namespace hark::models {

// Rope as Llama 3 scales it, an output table of its own, more rows than tokens.
inline constexpr const char* kLlama3 =
    R"({"model_type": "llama", "vocab_size": 600, "hidden_size": 256, "intermediate_size": 512,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 512, "rope_theta": 500000.0, "eos_token_id": 1,
        "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 64}})";
inline constexpr const char* kLlama2 =
    R"({"model_type": "llama", "vocab_size": 600, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": 128,
        "rope_scaling": {"rope_type": "linear", "factor": 2.0}, "eos_token_id": 2})";
inline constexpr const char* kQwen3 =
    R"({"model_type": "qwen3", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 32, "max_position_embeddings": 128, "eos_token_id": 1})";
inline constexpr const char* kMistral =
    R"({"model_type": "mistral", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 128, "sliding_window": 4096, "eos_token_id": 1})";
inline constexpr const char* kOlmo2 =
    R"({"model_type": "olmo2", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 128, "eos_token_id": 1})";
inline constexpr const char* kGranite =
    R"({"model_type": "granite", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 128, "eos_token_id": 1, "embedding_multiplier": 12.0,
        "attention_multiplier": 0.015625, "residual_multiplier": 0.22, "logits_scaling": 6.0})";
inline constexpr const char* kSmolLm3 =
    R"({"model_type": "smollm3", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 128, "eos_token_id": 1})";
inline constexpr const char* kOtherRopes =
    R"({"model_type": "smollm3", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 128, "no_rope_layers": [1, 0]})";
inline constexpr const char* kWindows =
    R"({"model_type": "qwen2", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128,
        "use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1})";
inline constexpr const char* kYarn =
    R"({"model_type": "qwen2", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": 128,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
                         "original_max_position_embeddings": 32}})";
inline constexpr const char* kYarnFactor =
    R"({"model_type": "qwen2", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": 128,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.5}})";
inline constexpr const char* kYarnGemma =
    R"({"model_type": "gemma3_text", "vocab_size": 600, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 1,
        "head_dim": 32, "max_position_embeddings": 128, "query_pre_attn_scalar": 32,
        "rope_scaling": {"rope_type": "yarn", "factor": 8.0}})";
inline constexpr const char* kGemma2 =
    R"({"model_type": "gemma2", "vocab_size": 600, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 32, "max_position_embeddings": 128, "query_pre_attn_scalar": 32,
        "sliding_window": 16, "eos_token_id": 1})";
inline constexpr const char* kGemma3 =
    R"({"model_type": "gemma3_text", "vocab_size": 600, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 7, "num_attention_heads": 4, "num_key_value_heads": 1,
        "head_dim": 32, "max_position_embeddings": 128, "query_pre_attn_scalar": 32,
        "sliding_window": 16, "rope_local_base_freq": 20000.0, "eos_token_id": 1,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0}})";
inline constexpr const char* kPhi3 =
    R"({"model_type": "phi3", "vocab_size": 640, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 128, "sliding_window": 16, "partial_rotary_factor": 0.5,
        "rms_norm_eps": 1e-5, "eos_token_id": 1, "pad_token_id": 0})";
inline constexpr const char* kOlmo3 =
    R"({"model_type": "olmo3", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": 128})";
inline constexpr const char* kOtherScalar =
    R"({"model_type": "gemma2", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 32, "max_position_embeddings": 128, "query_pre_attn_scalar": 24})";

}  // namespace hark::models
