// GGUF files as folders: back what the folder was that the file was made of.
// tests/golden/folder_peers.py has transformers read them.
#include "hub/hugging_face_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "gpt/decoder/model.h"
#include "gpt/family_models.h"
#include "hub/gguf_fixture.h"
#include "hub/hugging_face_settings.h"
#include "hub/tensor_list.h"
#include "hub/tiny_configs.h"
#include "support/error_of.h"
#include "support/family_folder.h"
#include "support/family_gguf.h"
#include "support/gguf_vocabulary.h"
#include "text/chat_request.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::pair<const char*, const char*> kModels[] = {{kLlama3, "llama3"},
                                                           {kLlama2, "llama2"},
                                                           {test::kTinyConfig, "qwen2"},
                                                           {kYarn, "qwen2"},
                                                           {kQwen3, "qwen2"},
                                                           {kMistral, "tekken"},
                                                           {kOlmo2, "olmo2"},
                                                           {kGranite, "granite"},
                                                           {kSmolLm3, "smollm3"},
                                                           {kLlama2, "deepseek_llm"},
                                                           {kGemma2, "gemma"},
                                                           {kGemma3, "gemma"},
                                                           {test::kTinyConfig, "smollm2"},
                                                           {kPhi3, "phi3"}};

class FolderWriting : public GgufConversion {
  protected:
    fs::path folder(const std::string& config, const std::string& tokenizer) {
        const fs::path path = directory_.path() / "folder";
        fs::remove_all(path);
        test::write_tiny_model(path, config, tokenizer);
        return path;
    }
    // The folder that the model becomes in `type`.
    fs::path back(const fs::path& from, const std::string& type) {
        const fs::path path = directory_.path() / ("back-" + from.stem().string() + "-" + type);
        fs::remove_all(path);
        convert_model(from, path, {"safetensors", type, ""}, [](const std::string&) { FAIL(); });
        return path;
    }
};

std::vector<int32_t> some_ids(int64_t n_vocab) {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 40; ++i) ids.push_back(static_cast<int32_t>(i * 37 % n_vocab));
    return ids;
}

// Of the prompt's last token; the frequencies of rotary positions may differ in their last digits.
void expect_same_logits(const fs::path& a, const fs::path& b) {
    const gpt::Model x = gpt::load_model(a, precision_of("f32")),
                     y = gpt::load_model(b, precision_of("f32"));
    const std::vector<float> expected = gpt::logits_of(x, some_ids(x.config.n_vocab)),
                             found = gpt::logits_of(y, some_ids(x.config.n_vocab));
    ASSERT_EQ(found.size(), expected.size());
    float largest = 0;
    for (const float logit : expected) largest = std::max(largest, std::abs(logit));
    for (size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], expected[i], 1e-5f * largest) << i;
}

void expect_same_tokenizer(const gpt::ModelFile& a, const gpt::ModelFile& b) {
    const auto x = a.tokenizer(), y = b.tokenizer();
    for (const std::string text :
         {"Hello, world! 1984 caf\xC3\xA9  \n\n\xE4\xB8\x80 don't", "<|im_end|>", " x  y ",
          "\t\t a <0x41> \xF0\x9F\x90\xB3 <table>"}) {
        EXPECT_EQ(y->encode(text), x->encode(text)) << text;
        EXPECT_EQ(y->encode(text, {true, true}), x->encode(text, {true, true})) << text;
        EXPECT_EQ(y->decode(x->encode(text)), x->decode(x->encode(text))) << text;
    }
    EXPECT_EQ(y->special_ids().bos, x->special_ids().bos);
    EXPECT_EQ(y->special_ids().eos, x->special_ids().eos);
    EXPECT_EQ(y->special_ids().padding, x->special_ids().padding);
    ASSERT_TRUE(b.chat_template());
    ChatRequest request;
    request.messages = {{{"role", "user"}, {"content", "Hello"}}};
    EXPECT_EQ(joined(b.chat_template()->render(request)),
              joined(a.chat_template()->render(request)));
}

TEST_F(FolderWriting, TheFolderComesBackToTheBit) {
    constexpr const char* kTypes[] = {"f16", "bf16", "f32"};
    for (size_t i = 0; i < std::size(kModels); ++i) {
        const auto& [config, tokenizer] = kModels[i];
        // Gemma's norms lose in f32 what it cannot hold of 1 + w.
        const bool is_gemma = std::string(config).find("gemma") != std::string::npos;
        const std::string type = kTypes[i % (is_gemma ? 2 : 3)];
        SCOPED_TRACE(concat(type, " ", tokenizer, " ", config));
        const fs::path typed = back(folder(config, tokenizer), type);
        const fs::path gguf = written(typed, type), again = back(gguf, type);
        EXPECT_TRUE(test::read_text(again / "model.safetensors") ==
                    test::read_text(typed / "model.safetensors"));
        expect_same_logits(gguf, again);
        expect_same_tokenizer(*gpt::open_model(gguf), *gpt::open_model(again));
    }
}

TEST_F(FolderWriting, GemmasNormsAreThoseOfTheFolder) {
    const fs::path from = folder(kGemma3, "gemma"), again = back(written(from, "f32"), "f32");
    const auto a = gpt::open_model(from), b = gpt::open_model(again);
    EXPECT_EQ(b->config().norm_offset, 1);
    for (const ModelTensor& tensor : tensor_list(a->config())) {
        const std::vector<float> x = values_of(a->tensors(), tensor),
                                 y = values_of(b->tensors(), tensor);
        for (size_t i = 0; i < x.size(); ++i)
            ASSERT_NEAR(y[i], x[i], tensor.norm ? 1.2e-7 : 0) << tensor.name;
    }
}

// The pooling of an embedding model goes along, the instructions from folder to folder.
TEST_F(FolderWriting, EmbeddingModelsKeepTheirPooling) {
    const fs::path from = folder(kQwen3, "qwen2");
    gpt::write_embedding_files(from, gpt::Pooling::mean, 64);
    test::write_text(from / "config_sentence_transformers.json",
                     R"({"prompts": {"query": "Find: "}})");
    const fs::path copy = back(from, "f16"), gguf = written(copy, "f16");
    EXPECT_EQ(gpt::open_model(copy)->embedding_settings().prompts.size(), 1u);
    for (const fs::path& path : {copy, gguf, back(gguf, "f16")})
        EXPECT_EQ(gpt::open_model(path)->embedding_settings().pooling, gpt::Pooling::mean) << path;
}

TEST_F(FolderWriting, BlocksAreWidened) {
    const fs::path gguf = written(folder(kLlama3, "llama3"), "q4_k_m");
    const auto a = gpt::open_model(gguf), b = gpt::open_model(back(gguf, "f32"));
    for (const ModelTensor& tensor : tensor_list(a->config()))
        EXPECT_EQ(values_of(b->tensors(), tensor), values_of(a->tensors(), tensor)) << tensor.name;
    EXPECT_EQ(gpt::stored_type(*gpt::open_model(back(gguf, "bf16"))), Dtype::bf16);
}

// The settings that a folder of transformers has other defaults for.
TEST_F(FolderWriting, ConfigSaysWhatTransformersWouldGuess) {
    const auto config_of = [&](const char* config, const char* tokenizer) {
        return json::parse(test::read_text(back(written(folder(config, tokenizer), "f16"), "f16") /
                                           "config.json"));
    };
    const json llama = config_of(kLlama3, "llama3");
    EXPECT_EQ(llama["architectures"], json({"LlamaForCausalLM"}));
    EXPECT_EQ(llama["rms_norm_eps"].dump(), "1e-06");
    EXPECT_EQ(llama["torch_dtype"], "float16");
    EXPECT_EQ(llama["rope_theta"], 500000);
    EXPECT_EQ(llama["rope_scaling"], json({{"rope_type", "llama3"},
                                           {"factor", 8.0},
                                           {"low_freq_factor", 1.0},
                                           {"high_freq_factor", 4.0},
                                           {"original_max_position_embeddings", 64}}));
    EXPECT_TRUE(llama["pad_token_id"].is_null());
    const json gemma = config_of(kGemma3, "gemma");
    EXPECT_EQ(gemma["query_pre_attn_scalar"], 32);
    EXPECT_EQ(gemma["rope_local_base_freq"], 20000);
    EXPECT_EQ(gemma["layer_types"].size(), 7u);
    EXPECT_EQ(gemma["layer_types"][5], "full_attention");
    EXPECT_EQ(gemma["bos_token_id"], 2);
    const json smollm = config_of(kSmolLm3, "smollm3");
    EXPECT_EQ(smollm["no_rope_layers"], json({1, 1, 1, 0, 1}));
    EXPECT_EQ(config_of(kPhi3, "phi3")["partial_rotary_factor"], 0.5);
}

TEST_F(FolderWriting, Experts) {
    for (const char* name :
         {"mixtral", "qwen3_moe", "deepseek_v2, lite", "deepseek_v2, groups", "deepseek_v3"}) {
        SCOPED_TRACE(name);
        json config = gpt::family_config(name);
        config["vocab_size"] = 512;
        config["num_hidden_layers"] = 2;
        if (config.contains("rope_scaling") && config["rope_scaling"].contains("mscale"))
            config["rope_scaling"]["mscale"] = config["rope_scaling"]["mscale_all_dim"];
        const fs::path from = back(folder(config.dump(), "qwen2"), "bf16");
        const fs::path gguf = written(from, "bf16"), again = back(gguf, "bf16");
        EXPECT_TRUE(test::read_text(again / "model.safetensors") ==
                    test::read_text(from / "model.safetensors"));
        expect_same_logits(gguf, again);
    }
}

// What a GGUF file of the family has, with keys and tensors more.
fs::path other_file(const fs::path& path, const test::GgufCase& of, json config,
                    const std::function<void(test::GgufWriter&)>& more) {
    config["vocab_size"] = 512;
    config["rope_theta"] = 10000.0;
    if (!test::has_yarn(config["model_type"].get<std::string>())) config.erase("rope_scaling");
    const gpt::DecoderConfig read = gpt::parse_config(config.dump(), of.name);
    test::FamilyWeights weights(of.is_gemma);
    test::GgufWriter file = test::family_gguf(weights, of, read);
    more(file);
    const json tokenizer = json::parse(test::read_text(
        test::source_dir() / "tests/golden/model_tokenizers/smollm2.json"))["tokenizer"];
    test::add_vocabulary(file, tokenizer, 512);
    test::write_text(path, file.bytes());
    return path;
}

TEST_F(FolderWriting, OtherRopes) {
    const fs::path olmo3 = other_file(
        directory_.path() / "olmo3.gguf", {"olmo3, yarn, other layers", "olmo2", false, false},
        gpt::family_config("olmo3, yarn, other layers"), [](test::GgufWriter&) {});
    expect_same_logits(olmo3, back(olmo3, "f32"));
    const auto factors = [](float from, float step) {
        std::string bytes;
        for (int i = 0; i < 4; ++i)
            bytes += test::GgufWriter::number(from + step * static_cast<float>(i));
        return bytes;
    };
    json phi3 = json::parse(kPhi3);
    const fs::path longrope =
        other_file(directory_.path() / "phi3.gguf", {"phi3", "phi3", false, false}, phi3,
                   [&](test::GgufWriter& file) {
                       file.u32("phi3.rope.dimension_count", 8);
                       file.u32("phi3.rope.scaling.original_context_length", 32);
                       file.tensor("rope_factors_short.weight", {4}, 0, factors(1, 0.25f));
                       file.tensor("rope_factors_long.weight", {4}, 0, factors(2, 1.5f));
                   });
    expect_same_logits(longrope, back(longrope, "f32"));
    EXPECT_TRUE(gpt::open_model(back(longrope, "f32"))->config().has_longrope());
}

TEST_F(FolderWriting, WhatCannotBeSaidIsNamed) {
    const auto why = [&](const char* name, const test::GgufCase& of, const json& config,
                         const std::function<void(test::GgufWriter&)>& more) {
        const fs::path path = other_file(directory_.path() / name, of, config, more);
        return test::error_of([&] { back(path, "f32"); });
    };
    EXPECT_NE(why("divided.gguf", {"llama", "llama", true, false}, json::parse(kLlama2),
                  [](test::GgufWriter& file) {
                      std::string bytes;
                      for (int i = 0; i < 8; ++i)
                          bytes += test::GgufWriter::number(1.0f + 0.3f * static_cast<float>(i));
                      file.tensor("rope_freqs.weight", {8}, 0, bytes);
                  })
                  .find("config.json cannot say the divisors of frequencies"),
              std::string::npos);
    EXPECT_NE(why("turned.gguf", {"llama", "llama", true, false}, json::parse(kLlama2),
                  [](test::GgufWriter& file) { file.u32("llama.rope.dimension_count", 8); })
                  .find("config.json cannot say the file's rope in the family llama"),
              std::string::npos);
    EXPECT_FALSE(fs::exists(directory_.path() / "back-divided-f32"));
    const fs::path gguf = written(folder(kLlama2, "llama2"), "f16");
    EXPECT_THROW(convert_model(gguf, directory_.path() / "x", {"safetensors", "f16", "T"}, {}),
                 UsageError);
    EXPECT_FALSE(fs::exists(directory_.path() / "x"));
}

}  // namespace
}  // namespace hark::models
