// A language model's config.json, of every family.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "core/error.h"
#include "core/json.h"
#include "fuzz/seeds.h"
#include "gpt/families/config.h"
#include "gpt/families/tensor_spec.h"

using namespace hark;

std::vector<std::string> fuzz::fuzz_seeds() {
    std::vector<std::string> seeds = {
        R"({"model_type":"gpt2","vocab_size":4096,"n_positions":512,"n_embd":256,"n_layer":8,)"
        R"("n_head":4,"n_inner":null,"layer_norm_epsilon":1e-05,"eos_token_id":4095,)"
        R"("activation_function":"gelu_new","tie_word_embeddings":true})",
        R"({"model_type":"gpt2","vocab_size":1,"n_positions":1,"n_embd":1,"n_layer":1,)"
        R"("n_head":1,"n_inner":7,"eos_token_id":[0,0],"activation_function":"gelu",)"
        R"("scale_attn_weights":true,"scale_attn_by_inverse_layer_idx":false})"};
    std::ifstream file(std::filesystem::path(HARK_SOURCE_DIR) / "tests/golden/families.json");
    const auto families = nlohmann::json::parse(file);
    for (const auto& [name, of] : families.items()) seeds.push_back(of["config"].dump());
    // transformers 5's form of ropes, and a text model inside another.
    seeds.push_back(
        R"({"model_type":"gemma3","text_config":{"model_type":"gemma3_text","vocab_size":64,)"
        R"("hidden_size":8,"num_hidden_layers":2,"num_attention_heads":2,"head_dim":4,)"
        R"("num_key_value_heads":1,"intermediate_size":8,"max_position_embeddings":64,)"
        R"("sliding_window":4,"rope_parameters":{"full_attention":{"rope_type":"linear",)"
        R"("factor":8.0,"rope_theta":1e6},"sliding_attention":{"rope_theta":1e4}},)"
        R"("layer_types":["sliding_attention","full_attention"]}})");
    for (const char* rope :
         {R"("type":"yarn","factor":4,"beta_fast":32,"beta_slow":1,"attention_factor":1.1)",
          R"("rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4)",
          R"("rope_type":"dynamic","factor":2)", R"("rope_type":"linear","factor":2)"})
        seeds.push_back(
            R"({"model_type":"llama","vocab_size":64,"hidden_size":8,"num_hidden_layers":1,)"
            R"("num_attention_heads":2,"intermediate_size":8,"max_position_embeddings":64,)"
            R"("eos_token_id":[1,2],"rope_scaling":{"original_max_position_embeddings":16,)" +
            std::string(rope) + "}}");
    return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const gpt::DecoderConfig config =
            gpt::parse_config({reinterpret_cast<const char*>(data), size}, "C");
        for (int64_t n : {config.n_vocab, config.n_positions, config.n_embd, config.n_layer,
                          config.n_head, config.n_kv_head, config.head_dim})
            if (n < 1) std::abort();
        for (int32_t id : config.eos_token_ids)
            if (id < 0 || id >= config.n_vocab) std::abort();
        if (config.n_head % config.n_kv_head != 0) std::abort();
        if (std::ssize(config.layers) != config.n_layer) std::abort();
        if (config.n_layer < 100 && config.experts.count < 100) gpt::tensor_specs(config);
    } catch (const Error&) {
    }
    return 0;
}
