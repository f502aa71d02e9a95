#include "gpt/families/config.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "core/json/json.h"
#include "support/process.h"

using namespace hark;
using nlohmann::json;

namespace {

json small() {
    return {{"model_type", "gpt2"}, {"vocab_size", 300}, {"n_positions", 32},
            {"n_embd", 16},         {"n_layer", 2},      {"n_head", 4}};
}

std::string message_of(const std::function<void(json&)>& change) {
    json root = small();
    change(root);
    try {
        gpt::parse_config(root.dump(), "C");
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST(GptConfig, Demo) {
    const gpt::DecoderConfig config = gpt::load_config(test::source_dir() / "models/gpt-demo");
    EXPECT_EQ(config.n_vocab, 4096);
    EXPECT_EQ(config.n_positions, 512);
    EXPECT_EQ(config.n_embd, 256);
    EXPECT_EQ(config.n_layer, 8);
    EXPECT_EQ(config.n_head, 4);
    EXPECT_EQ(config.n_inner, 1024);
    EXPECT_FLOAT_EQ(config.norm_eps, 1e-5f);
    EXPECT_EQ(config.activation, Activation::gelu_tanh);
    EXPECT_TRUE(config.tie_word_embeddings);
    EXPECT_EQ(config.eos_token_ids, std::vector<int32_t>{4095});
}

TEST(GptConfig, APartOfAHeadTurns) {
    for (const double partial : {0.0, -1.0, 1.5, 4294967296.5}) {
        const json root = {{"model_type", "phi3"},
                           {"vocab_size", 64},
                           {"hidden_size", 16},
                           {"num_hidden_layers", 1},
                           {"num_attention_heads", 2},
                           {"intermediate_size", 16},
                           {"partial_rotary_factor", partial},
                           {"max_position_embeddings", 32}};
        EXPECT_THROW(gpt::parse_config(root.dump(), "C"), Error) << partial;
    }
}

// Without rms_norm_eps the norms have that of the family's class in transformers 4.57.
TEST(GptConfig, TheFamilysEpsilon) {
    for (const auto& [family, eps] : {std::pair{"llama", 1e-6f},
                                      {"mistral", 1e-6f},
                                      {"qwen3", 1e-6f},
                                      {"gemma2", 1e-6f},
                                      {"granite", 1e-6f},
                                      {"smollm3", 1e-6f},
                                      {"phi3", 1e-5f},
                                      {"olmo2", 1e-5f}}) {
        const json root = {
            {"model_type", family},   {"vocab_size", 64},         {"hidden_size", 16},
            {"num_hidden_layers", 1}, {"num_attention_heads", 2}, {"num_key_value_heads", 1},
            {"head_dim", 8},          {"intermediate_size", 16},  {"max_position_embeddings", 32}};
        EXPECT_FLOAT_EQ(gpt::parse_config(root.dump(), family).norm_eps, eps) << family;
    }
}

TEST(GptConfig, TakesTheRestAsTransformersDoes) {
    json root = small();
    gpt::DecoderConfig config = gpt::parse_config(root.dump(), "C");
    EXPECT_EQ(config.n_inner, 64);
    EXPECT_TRUE(config.eos_token_ids.empty());
    root["n_inner"] = 40;
    root["activation_function"] = "gelu";
    root["eos_token_id"] = {298, 299};
    root["tie_word_embeddings"] = false;
    root["layer_norm_epsilon"] = 1e-6;
    config = gpt::parse_config(root.dump(), "C");
    EXPECT_EQ(config.n_inner, 40);
    EXPECT_EQ(config.activation, Activation::gelu);
    EXPECT_EQ(config.eos_token_ids, (std::vector<int32_t>{298, 299}));
    EXPECT_FALSE(config.tie_word_embeddings);
    EXPECT_FLOAT_EQ(config.norm_eps, 1e-6f);
}

TEST(GptConfig, SaysWhatIsWrong) {
    const struct {
        std::function<void(json&)> change;
        const char* message;
    } cases[] = {
        {[](json& c) { c["model_type"] = "whisper"; }, "use whisper-transcribe"},
        {[](json& c) { c["model_type"] = "mamba"; },
         "qwen3_moe, gpt_oss, deepseek_v2, deepseek_v3), found 'mamba'"},
        {[](json& c) { c.erase("model_type"); }, "found null"},
        {[](json& c) { c.erase("n_embd"); }, "C: expected 'n_embd', found none"},
        {[](json& c) { c["n_layer"] = "8"; }, "'n_layer': expected a whole number"},
        {[](json& c) { c["n_layer"] = 0; }, "found 0"},
        {[](json& c) { c["n_layer"] = 2.5; }, "found 2.5"},
        {[](json& c) { c["n_positions"] = 1 << 30; }, "'n_positions'"},
        {[](json& c) { c["n_head"] = 3; }, "to divide 'n_embd', found 3 and 16"},
        {[](json& c) { c["eos_token_id"] = 300; }, "from 0 to 299, found 300"},
        {[](json& c) { c["layer_norm_epsilon"] = 0; }, "'layer_norm_epsilon'"},
        {[](json& c) { c["activation_function"] = "relu"; }, "found relu"},
        {[](json& c) { c["scale_attn_weights"] = false; }, "'scale_attn_weights': expected true"},
        {[](json& c) { c["scale_attn_by_inverse_layer_idx"] = true; }, "expected false"},
        {[](json& c) { c["add_cross_attention"] = 1; }, "expected true or false, found number"},
        {[](json& c) { c = json::array(); }, "C: expected a JSON object"},
    };
    for (const auto& wrong : cases) {
        const std::string message = message_of(wrong.change);
        EXPECT_NE(message.find(wrong.message), std::string::npos)
            << "'" << wrong.message << "' is not in: " << message;
    }
    EXPECT_EQ(message_of([](json&) {}), "no error");
}
