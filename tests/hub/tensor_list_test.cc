// The tensors that a config asks for are those that its checkpoint has.
#include "hub/tensor_list.h"

#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "core/f16.h"
#include "formats/safetensors.h"
#include "hub/describe.h"
#include "hub/verify.h"
#include "kernels/runtime/backend.h"
#include "support/family_folder.h"
#include "support/golden.h"
#include "support/process.h"
#include "whisper/model/model.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

using Shapes = std::map<std::string, std::vector<int64_t>>;

Shapes shapes_in(const fs::path& directory, const std::string& prefix) {
    Shapes shapes;
    const SafetensorsFile file(directory / "model.safetensors");
    for (const TensorEntry& entry : file.entries()) {
        const bool prefixed = entry.name.starts_with(prefix);
        shapes[entry.name.substr(prefixed ? prefix.size() : 0)] = entry.shape;
    }
    return shapes;
}

Shapes shapes_listed(const fs::path& directory) {
    Shapes shapes;
    for (const ModelTensor& tensor : tensor_list(open_any_model(directory))) {
        EXPECT_FALSE(shapes.contains(tensor.name)) << tensor.name;
        shapes[tensor.name] = tensor.shape;
    }
    return shapes;
}

TEST(TensorList, IsTheCheckpoints) {
    EXPECT_EQ(shapes_listed(test::whisper_demo()), shapes_in(test::whisper_demo(), "model."));
    EXPECT_EQ(shapes_listed(test::gpt_demo()), shapes_in(test::gpt_demo(), "transformer."));
}

// Mistral 3's and Gemma 3's folders, of transformers 4 and 5.
TEST(TensorList, OfTextModelsInsideOthers) {
    const auto config = [](const char* type, bool tied) {
        return nlohmann::json({{"model_type", type},
                               {"vocab_size", 512},
                               {"hidden_size", 64},
                               {"intermediate_size", 96},
                               {"num_hidden_layers", 2},
                               {"num_attention_heads", 4},
                               {"num_key_value_heads", 2},
                               {"max_position_embeddings", 128},
                               {"tie_word_embeddings", tied}});
    };
    for (const auto& [type, tied] : {std::pair{"mistral", false}, {"gemma3_text", true}})
        for (const char* prefix : {"model.", "language_model.model.", "model.language_model."}) {
            SCOPED_TRACE(concat(type, " ", prefix));
            const test::TemporaryDirectory inside, alone;
            const nlohmann::json text = config(type, tied);
            test::write_tiny_model(alone.path(), text.dump(), "qwen2");
            test::write_tiny_model(
                inside.path(),
                nlohmann::json({{"model_type", "other"}, {"text_config", text}}).dump(), "qwen2",
                prefix);
            const auto found = gpt::open_model(inside.path()),
                       expected = gpt::open_model(alone.path());
            EXPECT_EQ(found->config().tie_word_embeddings, tied);
            for (const ModelTensor& tensor : tensor_list(expected->config()))
                EXPECT_EQ(values_of(found->tensors(), tensor),
                          values_of(expected->tensors(), tensor))
                    << tensor.name;
        }
}

// The numbers of parameters that their pages on Hugging Face show.
TEST(TensorList, OfMixturesOfExperts) {
    const std::pair<const char*, int64_t> expected[] = {
        {R"({"model_type": "mixtral", "vocab_size": 32000, "hidden_size": 4096,
             "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
             "num_key_value_heads": 8, "max_position_embeddings": 32768, "num_local_experts": 8,
             "num_experts_per_tok": 2})",
         46'702'792'704},
        {R"({"model_type": "qwen3_moe", "vocab_size": 151936, "hidden_size": 2048,
             "intermediate_size": 6144, "num_hidden_layers": 48, "num_attention_heads": 32,
             "num_key_value_heads": 4, "head_dim": 128, "max_position_embeddings": 40960,
             "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768})",
         30'532'122'624},
        {R"({"model_type": "gpt_oss", "vocab_size": 201088, "hidden_size": 2880,
             "intermediate_size": 2880, "num_hidden_layers": 24, "num_attention_heads": 64,
             "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072,
             "num_local_experts": 32, "num_experts_per_tok": 4})",
         20'914'757'184},
        {R"({"model_type": "deepseek_v2", "vocab_size": 102400, "hidden_size": 2048,
             "intermediate_size": 10944, "num_hidden_layers": 27, "num_attention_heads": 16,
             "max_position_embeddings": 163840, "kv_lora_rank": 512, "q_lora_rank": null,
             "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
             "first_k_dense_replace": 1, "moe_intermediate_size": 1408, "n_routed_experts": 64,
             "n_shared_experts": 2, "num_experts_per_tok": 6})",
         15'706'484'224},
        {R"({"model_type": "deepseek_v2", "vocab_size": 102400, "hidden_size": 5120,
             "intermediate_size": 12288, "num_hidden_layers": 60, "num_attention_heads": 128,
             "max_position_embeddings": 163840, "kv_lora_rank": 512, "q_lora_rank": 1536,
             "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
             "first_k_dense_replace": 1, "moe_intermediate_size": 1536, "n_routed_experts": 160,
             "n_shared_experts": 2, "num_experts_per_tok": 6})",
         235'741'434'880}};
    for (const auto& [config, parameters] : expected) {
        int64_t found = 0;
        for (const ModelTensor& tensor : tensor_list(gpt::parse_config(config, "C")))
            found += tensor.size();
        EXPECT_EQ(found, parameters) << config;
    }
}

// "Parameters" of Radford et al. 2022, table 1, in millions; the positions of the sound, a formula,
// count here.
TEST(TensorList, OfOfficialSizes) {
    const std::map<std::string, double> millions = {
        {"tiny", 39}, {"base", 74}, {"small", 244}, {"medium", 769}, {"large-v2", 1550}};
    for (const auto& [size, expected] : millions) {
        int64_t parameters = 0;
        for (const ModelTensor& tensor : tensor_list(whisper::official_config(size)))
            parameters += tensor.size();
        EXPECT_NEAR(static_cast<double>(parameters) / 1e6, expected, 0.04 * expected) << size;
    }
}

TEST(TensorList, ValuesAreTheStoredOnes) {
    const ModelHandle model = open_any_model(test::whisper_demo());
    const SafetensorsFile file(test::whisper_demo() / "model.safetensors");
    const TensorEntry* entry = file.find("model.decoder.layers.3.fc1.weight");
    ASSERT_NE(entry, nullptr);
    const auto* stored = static_cast<const f16_t*>(file.tensor(*entry).data);
    const std::vector<float> values =
        values_of(model.tensors(), {"decoder.layers.3.fc1.weight", {1024, 256}});
    ASSERT_EQ(values.size(), 1024u * 256);
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], to_float(stored[i]));
    EXPECT_THROW(values_of(model.tensors(), {"decoder.layers.3.fc1.weight", {256, 1024}}), Error);
    EXPECT_THROW(values_of(model.tensors(), {"decoder.layers.4.fc1.weight", {1024, 256}}), Error);
}

// A row of 20 + 8 numbers per token and layer.
TEST(Describe, TellsTheCacheOfLatentAttention) {
    const auto told = describe_model(
        open_any_model(test::source_dir() / "tests/golden/model_files/deepseek/v3.gguf"));
    EXPECT_EQ(told["context_memory"].dump(), R"([{"tokens":128,"f32":28672,"f16":14336}])");
    EXPECT_EQ(told["decoder"].dump(),
              R"({"layers":2,"channels":32,"heads":2,"mlp":48,"experts":6,"experts_per_token":2,)"
              R"("expert_mlp":16,"shared_expert_mlp":16,"latent_channels":20,"rotary_channels":8,)"
              R"("head_channels":24,"value_channels":12})");
    EXPECT_NE(as_text(told).find("2 layers of 32, 2 heads over latent rows of 20 + 8, 2 of 6 "
                                 "experts of 16 and a shared one of 16"),
              std::string::npos)
        << as_text(told);
}

// What is told is what a model that has been read takes; it adds zeros for the keys' missing bias.
TEST(Describe, TellsTheMemoryThatWeightsTake) {
    const auto told = describe_model(open_any_model(test::whisper_demo()));
    for (const std::string dtype : {"f32", "f16", "bf16", "int8", "fp8"}) {
        const Device on = dtype == "fp8" ? Device::cuda : Device::cpu;  // a GPU's alone
        const auto bytes = static_cast<double>(
            whisper::load_model(test::whisper_demo(), precision_of(dtype, on)).weights.bytes());
        EXPECT_NEAR(told["memory"][dtype].get<double>(), bytes, 0.005 * bytes) << dtype;
    }
}

TEST(Verify, NamesEveryTensorThatIsWrong) {
    test::TemporaryDirectory directory;
    fs::copy(test::gpt_demo(), directory.path(), fs::copy_options::recursive);
    SafetensorsHeader header;
    const SafetensorsFile whole(test::gpt_demo() / "model.safetensors");
    std::string data;
    for (TensorEntry entry : whole.entries()) {
        const Tensor tensor = whole.tensor(entry);
        if (entry.name.ends_with("ln_f.bias")) continue;
        std::string bytes(static_cast<const char*>(tensor.data), tensor.bytes());
        if (entry.name.ends_with("h.2.ln_1.weight"))
            bytes.replace(0, 2, "\x01\x7c");  // not a number
        if (entry.name.ends_with("h.3.ln_1.weight")) entry.shape = {16, 16};
        entry.begin = data.size();
        data += bytes;
        entry.end = data.size();
        header.tensors.push_back(entry);
    }
    test::write_text(directory.path() / "model.safetensors",
                     format_safetensors_header(header) + data);
    const TensorCheck check = check_tensors(open_any_model(directory.path()));
    EXPECT_EQ(check.tensors, 97);
    ASSERT_EQ(check.problems.size(), 3u);
    for (const std::string name : {"h.2.ln_1.weight", "h.3.ln_1.weight", "ln_f.bias"}) {
        bool named = false;
        for (const std::string& problem : check.problems)
            named = named || problem.find(name) != std::string::npos;
        EXPECT_TRUE(named) << name;
    }
}

TEST(Verify, TheFirstDifference) {
    EXPECT_EQ(first_difference(compare_words("a b c", "a b c")), "");
    EXPECT_EQ(first_difference(compare_words("a b c", "a x c")), "word 2: expected 'b', found 'x'");
    EXPECT_EQ(first_difference(compare_words("a b c", "a c")),
              "word 2: expected 'b', found nothing");
    EXPECT_EQ(first_difference(compare_words("a b", "a b c")),
              "after word 2: expected nothing, found 'c'");
    EXPECT_EQ(first_difference(compare_words("b", "a b")),
              "before word 1: expected nothing, found 'a'");
}

}  // namespace
}  // namespace hark::models
