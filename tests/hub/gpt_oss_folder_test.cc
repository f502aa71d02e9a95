// gpt-oss's folders: what the published form has comes back from GGUF to the bit.
// tests/golden/folder_peers.py has transformers read them.
#include "hub/gpt_oss_folder.h"

#include <gtest/gtest.h>

#include "gpt/decoder/model.h"
#include "gpt/family_models.h"
#include "hub/gguf_fixture.h"
#include "support/family_folder.h"
#include "support/gpt_oss_folder.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class GptOssFolder : public GgufConversion {
  protected:
    // As it is published, in f32 except blocks.
    fs::path published(bool has_blocks) {
        json config = gpt::family_config(has_blocks ? "gpt_oss, mxfp4" : "gpt_oss");
        config["vocab_size"] = 512;
        if (has_blocks) config["quantization_config"] = {{"quant_method", "mxfp4"}};
        const fs::path path = directory_.path() / "published";
        fs::remove_all(path);
        test::write_tiny_model(path, config.dump(), "gpt_oss");
        test::write_gpt_oss(path, config, has_blocks);
        return path;
    }
    fs::path folder(const fs::path& from, const std::string& type, const std::string& name) {
        const fs::path path = directory_.path() / name;
        fs::remove_all(path);
        convert_model(from, path, {"safetensors", type, ""}, [](const std::string&) { FAIL(); });
        return path;
    }
};

json config_of(const fs::path& folder) {
    return json::parse(test::read_text(folder / "config.json"));
}

// Shapes, types and bytes of all tensors.
void expect_same_tensors(const fs::path& a, const fs::path& b) {
    const SafetensorsFile x(a / "model.safetensors"), y(b / "model.safetensors");
    ASSERT_EQ(x.entries().size(), y.entries().size());
    for (const TensorEntry& entry : x.entries()) {
        const TensorEntry* other = y.find(entry.name);
        ASSERT_TRUE(other) << entry.name;
        EXPECT_EQ(other->dtype, entry.dtype) << entry.name;
        EXPECT_EQ(other->shape, entry.shape) << entry.name;
        ASSERT_EQ(other->end - other->begin, entry.end - entry.begin) << entry.name;
        EXPECT_EQ(std::memcmp(x.data(entry), y.data(*other), entry.end - entry.begin), 0)
            << entry.name;
    }
}

void expect_equal_logits(const fs::path& a, const fs::path& b) {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 40; ++i) ids.push_back(i * 37 % 512);
    EXPECT_EQ(gpt::logits_of(gpt::load_model(a, precision_of("f32")), ids),
              gpt::logits_of(gpt::load_model(b, precision_of("f32")), ids));
}

TEST_F(GptOssFolder, BlocksComeBackToTheBit) {
    const fs::path from = published(true), gguf = written(from, "f32");
    const fs::path back = folder(gguf, "f32", "back"), copy = folder(from, "f32", "copy");
    expect_same_tensors(from, back);
    expect_same_tensors(from, copy);
    expect_equal_logits(from, back);
    const SafetensorsFile weights(back / "model.safetensors");
    const TensorEntry* blocks = weights.find("model.layers.2.mlp.experts.gate_up_proj_blocks");
    ASSERT_TRUE(blocks);
    EXPECT_EQ(blocks->dtype, "U8");
    EXPECT_EQ(blocks->shape, (std::vector<int64_t>{4, 128, 2, 16}));
}

TEST_F(GptOssFolder, BlocksStayInOtherTypes) {
    const fs::path from = published(true), bf16 = folder(from, "bf16", "bf16");
    const fs::path back = folder(written(bf16, "bf16"), "bf16", "back");
    expect_same_tensors(bf16, back);
    const SafetensorsFile x(from / "model.safetensors"), y(back / "model.safetensors");
    const std::string stack = "model.layers.1.mlp.experts.down_proj";
    for (const char* part : {"_blocks", "_scales"}) {
        const TensorEntry *wanted = x.find(stack + part), *found = y.find(stack + part);
        ASSERT_TRUE(wanted && found);
        EXPECT_EQ(std::memcmp(x.data(*wanted), y.data(*found), wanted->end - wanted->begin), 0);
    }
    EXPECT_EQ(y.find(stack + "_bias")->dtype, "BF16");
    EXPECT_EQ(y.find("model.layers.1.self_attn.sinks")->dtype, "BF16");
}

TEST_F(GptOssFolder, NumbersComeBackToTheBit) {
    const fs::path from = published(false), gguf = written(from, "f32");
    expect_same_tensors(from, folder(gguf, "f32", "back"));
    const fs::path f16 = folder(from, "f16", "f16");
    expect_same_tensors(f16, folder(written(f16, "f16"), "f16", "again"));
    // Blocks of other types are widened.
    const fs::path wide = folder(written(from, "q8_0"), "f32", "wide");
    EXPECT_FALSE(config_of(wide).contains("quantization_config"));
    expect_equal_logits(directory_.path() / "q8_0.gguf", wide);
}

TEST_F(GptOssFolder, ConfigSaysWhatTransformersReads) {
    const fs::path from = published(true);
    const json copy = config_of(folder(from, "bf16", "copy")),
               back = config_of(folder(written(from, "bf16"), "bf16", "back"));
    for (const json& config : {copy, back}) {
        EXPECT_EQ(config["quantization_config"]["quant_method"], "mxfp4");
        EXPECT_EQ(config["torch_dtype"], "bfloat16");
    }
    EXPECT_EQ(back["architectures"], json({"GptOssForCausalLM"}));
    for (const char* key : {"layer_types", "sliding_window", "num_local_experts", "rope_scaling",
                            "num_experts_per_tok", "intermediate_size", "attention_bias"})
        EXPECT_EQ(back[key], copy[key]) << key;
    EXPECT_EQ(back["swiglu_limit"], 7);
}

}  // namespace
}  // namespace hark::models
