// The smallest models of all families, and what a family's files ask for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fuzz/golden.h"
#include "gpt/families/family.h"
#include "support/family_weights.h"

namespace hark::fuzz {

// The config.json of a case in tests/golden/families.json, with two layers of few channels. mxfp4
// has blocks of 32.
inline nlohmann::json small_family(nlohmann::json config, int channels = 8) {
    const int heads = 2, layers = 2;
    for (const auto& [key, value] : {std::pair("hidden_size", channels),
                                     {"num_attention_heads", heads},
                                     {"num_hidden_layers", layers},
                                     {"vocab_size", 12},
                                     {"intermediate_size", channels},
                                     {"max_position_embeddings", 64}})
        config[key] = value;
    for (const auto& [key, value] : {std::pair("num_key_value_heads", heads),
                                     {"head_dim", 4},
                                     {"moe_intermediate_size", 8},
                                     {"num_local_experts", 2},
                                     {"num_experts", 2},
                                     {"num_experts_per_tok", 1},
                                     {"n_routed_experts", 4},
                                     {"n_group", 2},
                                     {"topk_group", 1},
                                     {"kv_lora_rank", 4},
                                     {"q_lora_rank", 4},
                                     {"qk_rope_head_dim", 4},
                                     {"qk_nope_head_dim", 4},
                                     {"v_head_dim", 4}})
        if (config.contains(key) && !config[key].is_null()) config[key] = value;
    for (const char* list : {"layer_types", "no_rope_layers"})
        if (config.contains(list))
            config[list].erase(config[list].begin() + layers, config[list].end());
    if (!config.contains("rope_scaling") || config["rope_scaling"].is_null()) return config;
    for (const char* list : {"short_factor", "long_factor"})
        if (config["rope_scaling"].contains(list))
            config["rope_scaling"][list] = nlohmann::json::array({1.5});
    return config;
}

// Weights by formula, and the names and shapes that were asked for.
class AskedWeights : public test::FamilyWeights {
  public:
    struct Asked {
        std::string name;
        Tensor tensor;
    };
    using FamilyWeights::FamilyWeights;
    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override {
        const Tensor tensor = FamilyWeights::take(name, shape);
        asked.push_back({name, tensor});
        return tensor;
    }
    std::vector<Asked> asked;
};

}  // namespace hark::fuzz
