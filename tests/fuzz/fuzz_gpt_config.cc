// config.json of language models: their shape, and how their matrices are packed.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "fuzz/golden.h"
#include "fuzz/target.h"
#include "gpt/families/config.h"
#include "gpt/families/quantization.h"
#include "gpt/families/tensor_spec.h"

using namespace hark;
using namespace hark::fuzz;

namespace {

void check(const gpt::DecoderConfig& config) {
    for (int64_t n : {config.n_vocab, config.n_positions, config.n_embd, config.n_layer,
                      config.n_head, config.n_inner})
        if (n < 1) std::abort();
    for (int32_t id : config.eos_token_ids)
        if (id < 0 || id >= config.n_vocab) std::abort();
    if (config.family == "gpt2" && config.n_embd % config.n_head != 0) std::abort();
    if (config.n_head % config.n_kv_head != 0) std::abort();
    // Each expert has tensors of its own: a list of few.
    if (config.n_layer * (config.experts.count + config.n_head) > 1000) return;
    for (const gpt::TensorSpec& spec : gpt::tensor_specs(config))
        if (spec.rows < 1 || spec.columns < 0) std::abort();
}

}  // namespace

static std::vector<std::string> gpt_config_seeds() {
    std::vector<std::string> seeds = {
        R"({"model_type":"gpt2","vocab_size":4096,"n_positions":512,"n_embd":256,"n_layer":8,)"
        R"("n_head":4,"n_inner":null,"layer_norm_epsilon":1e-05,"eos_token_id":4095,)"
        R"("activation_function":"gelu_new","tie_word_embeddings":true})",
        R"({"model_type":"gpt2","vocab_size":1,"n_positions":1,"n_embd":1,"n_layer":1,)"
        R"("n_head":1,"n_inner":7,"eos_token_id":[0,0],"activation_function":"gelu",)"
        R"("scale_attn_weights":true,"scale_attn_by_inverse_layer_idx":false})"};
    for (const char* name : {"families.json", "packed.json"})
        for (const auto& reference : golden(name)) {
            nlohmann::json config = reference["config"];
            seeds.push_back(config.dump());
            // What is not there has a default.
            for (const char* key : {"layer_types", "sliding_window", "rope_scaling"})
                config.erase(key);
            config["use_sliding_window"] = true;
            seeds.push_back(nlohmann::json{{"text_config", config}}.dump());
            config["sliding_window"] = -1;
            seeds.push_back(config.dump());
        }
    return seeds;
}

static int gpt_config_input(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const gpt::DecoderConfig config = gpt::parse_config(text, "C");
        check(config);
        if (config.family == "gpt2")
            check(gpt::parse_config(format_config(config, Dtype::f32), "C"));
    } catch (const Error&) {
    }
    try {
        const nlohmann::json config = parse_json(text, "C");
        if (config.is_object()) gpt::parse_quantization(config, "C");
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kGptConfig{"gpt_config", gpt_config_seeds, gpt_config_input};
