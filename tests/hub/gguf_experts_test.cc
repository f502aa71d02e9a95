// Mixtures of experts as GGUF files: the golden tiny models, read back.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "core/error.h"
#include "formats/gguf.h"
#include "gpt/decoder/model.h"
#include "gpt/families/model_file.h"
#include "gpt/families/tensor_spec.h"
#include "gpt/family_models.h"
#include "hub/gguf_fixture.h"
#include "support/error_of.h"
#include "support/family_folder.h"
#include "support/gpt_oss_folder.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class GgufExperts : public GgufConversion {
  protected:
    // The golden model, with settings that GGUF can say and rows for the tokenizer.
    fs::path folder(const std::string& name, const json& settings) {
        json config = gpt::family_config(name);
        config["vocab_size"] = 512;
        config.update(settings);
        const fs::path path = directory_.path() / "folder";
        fs::remove_all(path);
        test::write_tiny_model(path, config.dump(), "qwen2");
        if (config["model_type"] == "gpt_oss")
            test::write_gpt_oss(path, config, name.ends_with("mxfp4"));
        return path;
    }
    std::vector<float> logits(const fs::path& path) {
        std::vector<int32_t> ids;
        for (int32_t i = 0; i < 20; ++i) ids.push_back(i * 37 % 512);
        const gpt::Model model = gpt::load_model(path, precision_of("f32"));
        Context ctx = make_cpu_context(1);
        gpt::Sequence sequence(ctx, model);
        const std::span<const float> logits = sequence.forward_to_host(ctx, ids);
        return {logits.begin(), logits.end()};
    }
};

TEST_F(GgufExperts, FilesInF32AreTheModel) {
    json equal = {{"num_hidden_layers", 2},
                  {"rope_scaling", gpt::family_config("deepseek_v2, groups")["rope_scaling"]}};
    equal["rope_scaling"]["mscale"] = equal["rope_scaling"]["mscale_all_dim"];
    const json two = {{"num_hidden_layers", 2}}, three = {{"num_hidden_layers", 3}};
    for (const auto& [name, settings] : {std::pair{"mixtral", two},
                                         {"qwen3_moe", two},
                                         {"gpt_oss", json::object()},
                                         {"gpt_oss, mxfp4", json::object()},
                                         {"deepseek_v2, lite", two},
                                         {"deepseek_v2, groups", equal},
                                         {"deepseek_v3", two},
                                         {"deepseek_v3, weights of any sum", three}}) {
        const fs::path from = folder(name, settings);
        EXPECT_EQ(logits(written(from, "f32")), logits(from)) << name;
    }
}

// The base that a family has without the key is not that of others.
TEST_F(GgufExperts, AConfigWithoutRopeThetaIsTheSameModel) {
    for (const char* name : {"mixtral", "gpt_oss"}) {
        json settings = {{"num_hidden_layers", 2}, {"rope_theta", nullptr}};
        if (std::string(name) == "gpt_oss") settings.erase("num_hidden_layers");
        const fs::path from = folder(name, settings);
        EXPECT_EQ(logits(written(from, "f32")), logits(from)) << name;
    }
}

// Whatever the type of the others is.
TEST_F(GgufExperts, BlocksOfGptOssStay) {
    const fs::path from = folder("gpt_oss, mxfp4", json::object());
    const auto file = gpt::open_model(from);
    const GgufFile f16(written(from, "f16")), q8_0(written(from, "q8_0"));
    const Tensor first = f16.tensors().at("blk.2.ffn_up_exps.weight");
    const Tensor second = q8_0.tensors().at("blk.2.ffn_up_exps.weight");
    EXPECT_EQ(first.dtype, Dtype::mxfp4);
    EXPECT_EQ(q8_0.tensors().at("blk.2.attn_q.weight").dtype, Dtype::q8_0);
    EXPECT_EQ(q8_0.tensors().at("blk.2.ffn_up_exps.bias").dtype, Dtype::f32);
    std::string stored;
    for (const gpt::TensorSpec& spec : gpt::tensor_specs(file->config()))
        if (spec.layer == 2 && spec.part == gpt::Part::expert_up) {
            const Tensor part = gpt::take(file->tensors(), spec);
            stored.append(static_cast<const char*>(part.data), part.bytes());
        }
    ASSERT_EQ(stored.size(), first.bytes());
    for (const Tensor& tensor : {first, second})
        EXPECT_EQ(
            stored.compare(0, stored.size(), static_cast<const char*>(tensor.data), tensor.bytes()),
            0);
}

// Experts are rounded as other matrices, one by one; the router is not.
TEST_F(GgufExperts, OtherTypesAreWithinTheirRounding) {
    const fs::path from = folder("qwen3_moe", {{"hidden_size", 256}, {"num_hidden_layers", 2}});
    const std::vector<float> expected = logits(from);
    for (const auto& [type, most] : {std::pair{"f16", 1e-3}, {"q8_0", 2e-2}, {"q4_k_m", 0.2}}) {
        const fs::path path = written(from, type);
        const GgufFile file(path);
        EXPECT_EQ(file.tensors().at("blk.1.ffn_gate_inp.weight").dtype, Dtype::f32);
        const std::vector<float> found = logits(path);
        double squares = 0, errors = 0;
        for (size_t i = 0; i < found.size(); ++i) {
            squares += double{expected[i]} * expected[i];
            errors += (double{found[i]} - expected[i]) * (double{found[i]} - expected[i]);
        }
        EXPECT_LT(std::sqrt(errors / squares), most) << type;
    }
    // Eight experts; rows of 32 are no block of q4_k.
    const GgufFile file(directory_.path() / "q4_k_m.gguf");
    EXPECT_EQ(file.tensors().at("blk.0.attn_k.weight").dtype, Dtype::q8_0);
    EXPECT_EQ(file.tensors().at("blk.0.ffn_gate_exps.weight").dtype, Dtype::q4_k);
    EXPECT_EQ(file.tensors().at("blk.0.ffn_down_exps.weight").dtype, Dtype::q5_0);
}

TEST_F(GgufExperts, WhatIsNotWrittenIsNamed) {
    const auto why = [&](const char* name, const json& settings) {
        const fs::path from = folder(name, settings);
        return test::error_of([&] { written(from, "q8_0"); });
    };
    EXPECT_NE(
        why("mixtral, window", json::object()).find("GGUF cannot say that layer 0 has a window"),
        std::string::npos);
    EXPECT_NE(why("qwen3_moe, dense layers", {{"use_sliding_window", false}})
                  .find("GGUF cannot say that layer 0 has no experts"),
              std::string::npos);
    EXPECT_NE(why("qwen3_moe", {{"norm_topk_prob", false}}).find("another sum than 1"),
              std::string::npos);
    EXPECT_NE(why("qwen3_moe", {{"attention_bias", true}}).find("no place for biases"),
              std::string::npos);
    EXPECT_NE(why("mixtral", {{"hidden_act", "gelu"}}).find("no place for this hidden_act"),
              std::string::npos);
    EXPECT_NE(why("gpt_oss", {{"swiglu_limit", 6}}).find("a swiglu_limit other than 7"),
              std::string::npos);
    json types = gpt::family_config("gpt_oss")["layer_types"];
    std::swap(types[0], types[1]);
    EXPECT_NE(why("gpt_oss", {{"layer_types", types}}).find("layer 0 has no window"),
              std::string::npos);
    json rope = gpt::family_config("gpt_oss")["rope_scaling"];
    rope["truncate"] = true;
    EXPECT_NE(why("gpt_oss", {{"rope_scaling", rope}}).find("'truncate': expected false"),
              std::string::npos);
    EXPECT_NE(why("deepseek_v2, groups", json::object())
                  .find("no place for yarn's mscale 1 and mscale_all_dim 0.707"),
              std::string::npos);
    EXPECT_FALSE(fs::exists(directory_.path() / "q8_0.gguf"));
}

}  // namespace
}  // namespace hark::models
